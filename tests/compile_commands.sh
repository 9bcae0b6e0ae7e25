#!/usr/bin/env bash
# What a language server needs to understand each part by itself: the declarations of the parts above it are included first.
#
#   tests/compile_commands.sh > compile_commands.json
#   tests/compile_commands.sh --check                   the last part of each header, which has all others above it, is read so
set -euo pipefail
cd "$(dirname "$0")/.."
make -s build/parts/lists seen

# One line a part: its path, a tab, and the command that reads it.
commands() {
    local folder part below
    for folder in src src/vk; do
        below=${folder#src}
        while read -r part _; do
            printf '%s\t%s\n' "$folder/$part" "${CC:-clang} -std=c99 -Ibuild/parts/public -I. -x c -fsyntax-only -Wno-unused-const-variable \
-D$([ $folder = src ] && echo TL_STRATEGY || echo TL_VK_BACKEND)_IMPLEMENTATION -include build/parts/above/${below:+vk/}$part.h $folder/$part"
        done < $folder/ORDER
    done
}

if [ "${1:-}" = --check ]; then
    commands | grep '/13_trace/front_picture.c\|/vk/04_kernels.c' | cut -f 2 | sed 's/$/ -Wall -Wextra -Werror/' | while read -r command; do
        if [[ $command != *vk/* ]] || echo '#include <vulkan/vulkan_core.h>' | clang -x c -E - >/dev/null 2>&1; then $command; fi
    done
    echo "$(commands | wc -l) parts, each understood with those above it"
else
    commands | awk -F '\t' -v directory="$PWD" '
        BEGIN {print "["}
        {gsub(/["\\]/, "\\\\&", directory)
         printf "%s  {\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s\"}", n++ ? ",\n" : "", directory, $1, $2}
        END {print "\n]"}'
fi
