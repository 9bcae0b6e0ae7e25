// What the tests of writers stand on: a sink in memory, and a reader of XML that knows what our pictures hold. Include after
// cmocka and the implementation.
#ifndef TESTS_SINK_SUPPORT_H
#define TESTS_SINK_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A sink that keeps what it was given, and fails at one write.
typedef struct memory_sink {
    char  *text;
    size_t length;
    long   count, fail_at;     // writes; -1 = none fails
    long   after_failure;      // writes after the one that failed: none is allowed
    size_t largest;
} memory_sink;

static inline tl_result memory_write(void *user, const char *text, size_t length) {
    memory_sink *m = (memory_sink *)user;
    if (m->fail_at >= 0 && m->count > m->fail_at) m->after_failure++;
    if (m->count++ == m->fail_at) return TL_ERROR_DEVICE_LOST;
    if (length > m->largest) m->largest = length;
    m->text = (char *)realloc(m->text, m->length + length + 1);
    assert_non_null(m->text);
    memcpy(m->text + m->length, text, length);
    m->length += length;
    m->text[m->length] = 0;
    return TL_OK;
}

static inline tl_sink sink_of(memory_sink *m, long fail_at) {
    tl_sink sink;
    memset(m, 0, sizeof *m);
    m->fail_at = fail_at;
    sink.write = memory_write;
    sink.user = m;
    return sink;
}

static inline int contains(const char *text, const char *part) { return strstr(text, part) != NULL; }

static inline int count_of(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part)) count++;
    return count;
}

static inline void must_hold(const char *text, const char *part) {
    if (!contains(text, part)) fail_msg("not found: %s\nin: %.3000s", part, text);
}

// Well-formed, as far as our pictures go: one root, tags closed in order, attributes in double
// quotes and once each, the three entities that we write, UTF-8, no control character.
static inline int xml_name_length(const char *at) {
    int length = 0;
    while ((at[length] >= 'a' && at[length] <= 'z') || (at[length] >= 'A' && at[length] <= 'Z') || at[length] == '-' ||
           (length && at[length] >= '0' && at[length] <= '9'))
        length++;
    return length;
}

// Bytes of the character there, and its number; 0 = no UTF-8.
static inline size_t utf8_length(const char *at, const char *end, uint32_t *code) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char first = (unsigned char)*at;
    size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4, i;
    if ((first >= 0x80 && first < 0xc0) || first >= 0xf8 || length > (size_t)(end - at)) return 0;
    *code = length == 1 ? first : first & (0x7fu >> length);
    for (i = 1; i < length; i++) {
        if (((unsigned char)at[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | ((unsigned char)at[i] & 0x3fu);
    }
    return *code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff) ? 0 : length;
}

static inline void must_be_text(const char *from, const char *end) {
    uint32_t code = 0;
    while (from < end) {
        size_t length = utf8_length(from, end, &code);
        if (!length || (code < 0x20 && code != '\n') || code == 0xFFFE || code == 0xFFFF || code == '<')
            fail_msg("text: %.80s", from);
        if (code == '&' && strncmp(from, "&amp;", 5) && strncmp(from, "&lt;", 4) && strncmp(from, "&gt;", 4))
            fail_msg("entity: %.80s", from);
        from += length;
    }
}

static inline const char *must_be_attributes(const char *at) {
    const char *seen[16];
    int lengths[16], count = 0, i;
    while (*at == ' ') {
        const char *name = ++at, *value;
        int length = xml_name_length(at);
        assert_true(length > 0 && count < 16);
        for (i = 0; i < count; i++) assert_false(lengths[i] == length && !strncmp(seen[i], name, (size_t)length));
        seen[count] = name;
        lengths[count++] = length;
        at += length;
        assert_true(at[0] == '=' && at[1] == '"');
        value = at += 2;
        while (*at && *at != '"') at++;
        assert_int_equal(*at, '"');
        must_be_text(value, at);
        at++;
    }
    return at;
}

static inline void must_be_xml(const char *text) {
    const char *open[16], *at = text;
    int depth = 0, roots = 0;
    while (*at) {
        const char *from = at;
        if (*at != '<') {
            while (*at && *at != '<') at++;
            must_be_text(from, at);
            if (!depth) assert_true(at - from == 1 && *from == '\n');
        } else if (at[1] == '/') {
            int length = xml_name_length(at + 2);
            assert_true(depth > 0 && !strncmp(open[depth - 1], at + 2, (size_t)length));
            assert_int_equal(xml_name_length(open[depth - 1]), length);
            depth--;
            at += 2 + length;
            assert_int_equal(*at++, '>');
        } else {
            int length = xml_name_length(at + 1);
            assert_true(length > 0 && depth < 16);
            if (!depth) roots++;
            open[depth] = at + 1;
            at = must_be_attributes(at + 1 + length);
            if (*at == '/') at++;
            else depth++;
            if (*at != '>') fail_msg("tag: %.80s", from);
            at++;
        }
    }
    assert_int_equal(depth, 0);
    assert_int_equal(roots, 1);
}

#endif
