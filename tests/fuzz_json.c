// clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz_json.c -o build/fuzz_json && build/fuzz_json -max_len=4096 tests/corpus/fuzz_json
//
// Each input is read as a strategy in JSON, as its summary, as a number, and as JSON of any kind.
// What is accepted is valid, prints, and parses back to an equal value; what is refused has a code, a sentence and an empty result.

#define TL_STRATEGY_IMPLEMENTATION
#include "../tl_strategy.h"
#include "support/fuzz_bytes.h"

static const tl_strategy zero;

static void must_be_refused(const tl_env *env, tl_result result, const tl_strategy *s, const char *function) {
    MUST(result == TL_ERROR_PARSE || result == TL_ERROR_INVALID_ARG);
    MUST(env->error.code == result && !strncmp(env->error.text, function, strlen(function)));
    MUST(tl_equals_strategy(s, &zero));
}

static void must_come_back(const tl_strategy *s) {
    char text[500], again[500];
    size_t length;
    tl_strategy back;
    MUST(!tl_check_strategy(NULL, s));
    length = tl_print_strategy_json(s, text, sizeof text);
    MUST(length < sizeof text && !tl_parse_strategy_json(NULL, text, length, &back) && tl_equals_strategy(s, &back));
    MUST(tl_print_strategy_json(&back, again, sizeof again) == length && !strcmp(text, again));
    length = tl_print_strategy(s, text, sizeof text);
    MUST(length < sizeof text);
    if (s->gradient.checkpointed && !s->gradient.checkpoint_interval) return;  // the summary cannot say 0
    MUST(!tl_parse_strategy(NULL, text, length, &back) && tl_equals_strategy(s, &back));
}

// A number that is read prints as a text that reads the same, and not as a longer one than it may.
static void check_number(const char *text, size_t length) {
    char buf[40];
    double value, back;
    tli_word word;
    tli_writer w = tli_writer_of(buf, sizeof buf);
    word.text = text;
    word.length = length;
    if (!tli_read_f64(word, &value)) { MUST(value == 0); return; }
    MUST(value - value == 0);
    tli_put_f64(&w, value);
    word.length = tli_finish(&w);
    word.text = buf;
    MUST(word.length <= 26 && tli_number_length(buf, word.length) == word.length);
    MUST(tli_read_f64(word, &back) && !memcmp(&value, &back, sizeof value));
}

// Any bytes print as a string that the reader accepts, and whole JSON stays JSON with space around it.
static void check_json(const char *text, size_t length) {
    char *name = (char *)malloc(length + 1), *out;
    size_t needed, i;
    tli_writer w = tli_writer_of(NULL, 0);
    tli_word raw;
    tli_json j = tli_json_open(NULL, TLI_IN(PARSE_STRATEGY_JSON), text, length);
    tl_result result;
    tli_json_skip(&j);
    result = tli_json_end(&j);
    MUST(result == TL_OK || result == TL_ERROR_PARSE);
    memcpy(name, text, length);
    name[length] = 0;
    tli_put_json_text(&w, name);
    needed = tli_finish(&w);
    out = (char *)malloc(needed + 1);
    w = tli_writer_of(out, needed + 1);
    tli_put_json_text(&w, name);
    MUST(tli_finish(&w) == needed && strlen(out) == needed);
    j = tli_json_open(NULL, TLI_IN(PARSE_STRATEGY_JSON), out, needed);
    MUST(tli_json_string(&j, &raw) && !tli_json_end(&j));
    for (i = 0; i < length && (unsigned char)name[i] < 0x80; i++) {}
    if (i == length) MUST(tli_json_is(raw, name));
    free(out);
    if (length >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) { text += 3; length -= 3; }  // a mark stands in front of a text alone
    out = (char *)malloc(length + 4);
    out[0] = '[';
    memcpy(out + 1, text, length);
    out[length + 1] = ']';
    j = tli_json_open(NULL, TLI_IN(PARSE_STRATEGY_JSON), out, length + 2);
    if (tli_json_enter(&j, '['))
        while (tli_json_next(&j, NULL)) tli_json_skip(&j);
    if (!result && !tli_json_end(&j)) MUST(j.depth == 0);
    else if (!result) MUST(strchr(name, '[') || strchr(name, '{'));  // one level deeper than 32
    free(out);
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    tl_strategy s;
    tl_result result;
    tl_env env;
    memset(&env, 0, sizeof env);
    if (!size) return 0;
    result = tl_parse_strategy_json(&env, text, size, &s);
    if (result) must_be_refused(&env, result, &s, "tl_parse_strategy_json: ");
    else must_come_back(&s);
    result = tl_parse_strategy(&env, text, size, &s);
    if (result) must_be_refused(&env, result, &s, "tl_parse_strategy: line ");
    else must_come_back(&s);
    check_number(text, size);
    check_json(text, size);
    return 0;
}
