#!/usr/bin/env bash
# What a language server needs to understand each part by itself: the parts above it are included first.
#
#   tests/compile_commands.sh > compile_commands.json
#   tests/compile_commands.sh --check                   compile every part in that way
set -euo pipefail
cd "$(dirname "$0")/.."

# One line a part: its path, a tab, and the command that reads it.
commands() {
    local folder part above
    for folder in src src/vk; do
        above="-D$([ $folder = src ] && echo TL_STRATEGY || echo TL_VK_BACKEND)_IMPLEMENTATION"
        while read -r part _; do
            printf '%s\t%s\n' "$folder/$part" "${CC:-clang} -std=c99 -I. -x c -fsyntax-only $above $folder/$part"
            above+=" -include $folder/$part"
        done < $folder/ORDER
    done
}

if [ "${1:-}" = --check ]; then
    commands | cut -f 2 | sed 's/$/ -Wno-everything -Werror=implicit-function-declaration/' |
        xargs -d '\n' -P "$(nproc 2>/dev/null || echo 2)" -n 1 bash -c
    echo "$(commands | wc -l) parts, each understood with those above it"
else
    commands | awk -F '\t' -v directory="$PWD" '
        BEGIN {print "["}
        {gsub(/["\\]/, "\\\\&", directory)
         printf "%s  {\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s\"}", n++ ? ",\n" : "", directory, $1, $2}
        END {print "\n]"}'
fi
