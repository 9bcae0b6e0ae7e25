#!/usr/bin/env bash
# Write the lists of declarations that parts and tests are compiled with:  tests/part_lists.sh FOLDER
#
#   FOLDER/above/PART.h                what stands above a part in ORDER
#   FOLDER/public/tl_strategy.h        the public half; what defines TL_STRATEGY_IMPLEMENTATION later gets no second one
#   FOLDER/private/tl_strategy.h       everything; both for tl_vk_backend.h, too
# Lists that are what they were stay untouched.
set -euo pipefail
folder=$1
new=$folder/lists.new

lists() {   # ORDER, its folder below FOLDER with a slash, header, what its implementation asks for
    awk -v folder="$folder" -v into="$new" -v below="$2" -v header="$3" -v asked="$4" '
        function see(part, file) {print "#include \"" folder "/" below part ".seen\"" > file}
        BEGIN {private = into "/private/" header; public = into "/public/" header
               print "#define " asked > private
               print "#define " asked "_DONE" > public}
        {
            above = into "/above/" below $1 ".h"
            printf "" > above
            for (i = 1; i < NR; i++) see(parts[i], above)
            close(above)
            parts[NR] = $1
            see($1, private)
            if ($1 ~ /\.h$/) see($1, public)
        }' "$1"
}

rm -rf "$new"
mkdir -p "$new/public" "$new/private"
{ awk '{print $1}' src/ORDER; awk '{print "vk/" $1}' src/vk/ORDER; } | sed "s|[^/]*$||; s|^|$new/above/|" | sort -u | xargs mkdir -p
lists src/ORDER '' tl_strategy.h TL_STRATEGY_IMPLEMENTATION
lists src/vk/ORDER vk/ tl_vk_backend.h TL_VK_BACKEND_IMPLEMENTATION
(cd "$new" && find . -type f -printf '%P\n') | while read -r list; do
    cmp -s "$new/$list" "$folder/$list" || { mkdir -p "$(dirname "$folder/$list")"; mv "$new/$list" "$folder/$list"; }
done
rm -rf "$new"
