# A part as its own translation unit: its private functions get external linkage, so that other parts and test programs
# can be linked with them.
#
#   awk -v part=src/06_remat/bound/bound.c -f tests/parts.awk src/...   its code, as C of which compilers name lines of the part
#   awk -v declarations=1 -f tests/parts.awk src/...                    what the parts below it see: types, macros, tables, and
#                                                                       functions without bodies; without comments, so that what
#                                                                       changes in a comment or a body changes nothing here
BEGIN {
    if (!declarations) print "#line 1 \"" part "\""
}
body {if (/^}/) body = 0; next}
head || /^(static|TLI_IMPL|TLI_VK_IMPL) [^=([{]*\(/ {
    sub(/^static (inline )?/, "")
    head = !/[;{}] *(\/\/.*)?$/
    if (declarations) {
        sub(/ *\/\/.*/, "")
        sub(/ \{.*\}$/, ";")
        body = sub(/ \{$/, ";")
    }
}
declarations && !/"/ {sub(/ *\/\/.*/, "")}
declarations && /^ *(\/\/.*)?$/ {next}
{print}
