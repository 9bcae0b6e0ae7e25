#!/usr/bin/env bash
# Compile compute shaders and keep their words in a header, between two marker lines, or in a folder, a file a shader.
#
#   tests/shaders.sh write FILE [DIR [PREFIX]]   put the words of DIR/*.comp into FILE, or each into FILE/*.c
#   tests/shaders.sh check FILE [DIR [PREFIX]]   compile again and compare; nothing is changed
#
# write makes a FILE that does not exist. DIR is shaders and PREFIX tli_vk_ where they are not given; DIR/copy.comp
# becomes the array tli_vk_copy_words. Files of a folder are parts of tl_vk_backend.h and end in an empty line. The words depend on the compiler, so its version is fixed. Where another one is
# installed, check says SKIPPED and validates the words as they are.
set -euo pipefail
mode=${1:-} file=${2:-} prefix=${4:-tli_vk_}
if [[ ! $mode =~ ^(write|check)$ ]] || [ -z "$file" ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
file=$(realpath "$file")
cd "$(dirname "$0")/.."
dir=${3:-shaders}
first='// -- words: made by make shaders --' last='// -- end of words --'
glslang='11:12.0.0' tools='v2023.1'  # Debian 12
compile=(glslangValidator -V --target-env vulkan1.0 -g0)
validate=(spirv-val --target-env vulkan1.0)
guard=TL_VK_BACKEND_IMPLEMENTATION
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

fail() { echo "shaders.sh: $*" >&2; exit 1; }

shopt -s nullglob
if [ ! -d "$file" ]; then
    [ -f "$file" ] || [ "$mode" = check ] || printf '%s\n' "$first" "$last" >"$file"
    [ -f "$file" ] || fail "$file: there is no such file"
    if [ "$(grep -cxF -- "$first" "$file")" != 1 ] || [ "$(grep -cxF -- "$last" "$file")" != 1 ]; then
        fail "$file: needs the two lines '$first' and '$last', once each and in this order"
    fi
fi
held_words() {      # the words that FILE holds now
    if [ -d "$file" ]; then cat "$file"/*.c
    else awk -v a="$first" -v b="$last" '$0 == b {on = 0} on {print} $0 == a {on = 1}' "$file"; fi
}
sources=("$dir"/*.comp)
[ ${#sources[@]} -gt 0 ] || fail "$dir: holds no *.comp"

# Why the words cannot be made here; nothing where they can.
obstacle() {
    local tool
    for tool in glslangValidator spirv-opt spirv-val spirv-dis; do
        command -v $tool >/dev/null || { echo "$tool not found (Debian: glslang-tools, spirv-tools)"; return; }
    done
    [[ $(glslangValidator --version) == "Glslang Version: $glslang"$'\n'* ]] ||
        { echo "glslangValidator is not $glslang"; return; }
    [[ $(spirv-opt --version 2>&1) == "SPIRV-Tools $tools "* ]] || echo "spirv-opt is not $tools"
}

# Every shader must run on any Vulkan 1.0 device: no capability that a device may lack.
validate_module() {
    "${validate[@]}" "$1" || fail "$2: spirv-val refuses it"
    [ "$(spirv-dis "$1" | grep OpCapability | tr -s ' ')" = " OpCapability Shader" ] ||
        fail "$2: needs another capability than Shader"
}

make_words() {     # of each source, into $temp/made/NAME.c
    local source name
    mkdir "$temp/made"
    for source in "${sources[@]}"; do
        name=$(basename "$source" .comp)
        "${compile[@]}" -o "$temp/plain.spv" "$source" >"$temp/log" ||
            fail "$source: does not compile: $(cat "$temp/log")"
        spirv-opt -O "$temp/plain.spv" -o "$temp/$name.spv"
        validate_module "$temp/$name.spv" "$source"
        {
            [ ! -d "$file" ] || echo "#if defined($guard) && !defined(${guard}_DONE)"
            echo "static const uint32_t ${prefix}${name}_words[] = {"
            od -An -v -tx4 -w32 "$temp/$name.spv" | sed -E 's/ ([0-9a-f]{8})/ 0x\1,/g; s/^ /    /'
            echo "};"
            [ ! -d "$file" ] || printf '#endif  // %s\n\n' $guard
        } >"$temp/made/$name.c"
    done
}

# The words that FILE holds, as modules again.
validate_words() {
    local name escapes count=0
    for name in $(held_words | sed -nE 's/^static const uint32_t (\w+)\[\] = \{$/\1/p'); do
        escapes=$(held_words | sed -nE "/ $name\[\] = \{\$/,/^\};\$/p" | grep -oE '0x[0-9a-f]{8}' |
            sed -E 's/0x(..)(..)(..)(..)/\\x\4\\x\3\\x\2\\x\1/' | tr -d '\n')
        printf '%b' "$escapes" >"$temp/$name.spv"
        validate_module "$temp/$name.spv" "$file: $name"
        count=$((count + 1))
    done
    [ $count = ${#sources[@]} ] ||
        fail "$file: holds $count shaders where $dir has ${#sources[@]}: run make shaders"
}

why=$(obstacle)
if [ -n "$why" ]; then
    [ "$mode" = check ] || fail "$why"
    if command -v spirv-val >/dev/null && command -v spirv-dis >/dev/null; then
        validate_words
        echo "SKIPPED shaders: $why; the words in $(basename "$file") are valid"
    else
        echo "SKIPPED shaders: $why"
    fi
    exit 0
fi
make_words
cat "$temp"/made/*.c >"$temp/words"
if [ "$mode" = check ]; then
    held_words | cmp -s - "$temp/words" ||
        fail "$file: the words differ from what $dir compiles to: run make shaders"
    echo "$(basename "$file"): the words of ${#sources[@]} shaders are those of $dir"
elif [ -d "$file" ]; then
    for held in "$file"/*.c; do [ -e "$temp/made/${held##*/}" ] || rm "$held"; done
    for made in "$temp"/made/*.c; do cmp -s "$made" "$file/${made##*/}" || cp "$made" "$file/"; done
else
    awk -v a="$first" -v b="$last" -v words="$temp/words" '
        $0 == b {on = 0}
        !on     {print}
        $0 == a {on = 1; while ((getline line < words) > 0) print line}' "$file" >"$temp/whole"
    cmp -s "$temp/whole" "$file" || cat "$temp/whole" >"$file"
fi
