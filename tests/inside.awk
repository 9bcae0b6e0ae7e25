# A header for tests that name what is private. Its functions get external linkage, so that one object serves all programs;
# with -v declarations=1 their bodies are left out: what such a program is compiled with. Lines keep their numbers.
BEGIN {
    header = ARGV[1]
    sub(/\.h$/, "", header)
    if (declarations) print "#define " toupper(header) "_IMPLEMENTATION"
    print "#line 1 \"" ARGV[1] "\""
}
body {print ""; if (/^}/) body = 0; next}
head || /^(static|TLI_IMPL|TLI_VK_IMPL) [^=([{]*\(/ {
    sub(/^static (inline )?/, "")
    head = !/[;{}] *(\/\/.*)?$/
    if (declarations) {
        sub(/ *\/\/.*/, "")
        sub(/ \{.*\}$/, ";")
        body = sub(/ \{$/, ";")
    }
}
{print}
