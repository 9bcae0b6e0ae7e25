#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#if !defined(TL_NO_TEXT) || (!defined(TL_NO_PLANNERS) && !defined(TL_NO_PRECISION))

// Text in both directions: numbers printed and read exactly, lines and words, JSON, and a buffered
// stream to a sink. In names, big is an unsigned integer of up to 4096 bits.

// -- numbers in the grammar of JSON --

typedef struct tli_word { const char *text; size_t length; } tli_word;

static size_t tli_digits_length(const char *text, size_t length) {
    size_t count = 0;
    while (count < length && text[count] >= '0' && text[count] <= '9') count++;
    return count;
}

// The length of the JSON number at the start of the text; 0 if there is none.
static size_t tli_number_length(const char *text, size_t length) {
    size_t at = length && text[0] == '-', digits = tli_digits_length(text + at, length - at);
    if (!digits) return 0;
    at += text[at] == '0' ? 1 : digits;
    if (at < length && text[at] == '.') {
        digits = tli_digits_length(text + at + 1, length - at - 1);
        if (!digits) return 0;
        at += 1 + digits;
    }
    if (at < length && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < length && (text[at] == '+' || text[at] == '-');
        digits = tli_digits_length(text + at, length - at);
        if (!digits) return 0;
        at += digits;
    }
    return at;
}
#endif

#if !defined(TL_NO_PLANNERS) && (!defined(TL_NO_TEXT) || !defined(TL_NO_PRECISION))
// only checkpoint configs of [5], precisions of [7] and recommendations of [9] are printed or read as fractions
// -- fractions as text --
//
// Conversions use exact big integers, so every platform prints the same digits and reads the same
// double.

#define TLI_BIG_LIMBS 128  // 4096 bits: no number that occurs is above 10^1131, which has 3758

typedef struct tli_big {
    int32_t  count;  // limbs in use, lowest first; the highest is not 0
    uint32_t limb[TLI_BIG_LIMBS];
} tli_big;

static void tli_big_set(tli_big *a, uint64_t value) {
    a->limb[0] = (uint32_t)value;
    a->limb[1] = (uint32_t)(value >> 32);
    a->count = a->limb[1] ? 2 : a->limb[0] ? 1 : 0;
}

static void tli_big_scale(tli_big *a, uint32_t factor, uint32_t add) {
    uint64_t carry = add;
    int32_t i;
    for (i = 0; i < a->count; i++) {
        carry += (uint64_t)a->limb[i] * factor;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) a->limb[a->count++] = (uint32_t)carry;
}

static void tli_big_scale10(tli_big *a, int64_t power) {
    for (; power >= 9; power -= 9) tli_big_scale(a, 1000000000u, 0);
    for (; power > 0; power--) tli_big_scale(a, 10, 0);
}

static void tli_big_shift(tli_big *a, int32_t bits) {
    int32_t limbs = bits / 32, i;
    if (!a->count) return;
    if (limbs) {
        for (i = a->count - 1; i >= 0; i--) a->limb[i + limbs] = a->limb[i];
        for (i = 0; i < limbs; i++) a->limb[i] = 0;
        a->count += limbs;
    }
    tli_big_scale(a, (uint32_t)1 << bits % 32, 0);
}

static int32_t tli_big_bits(const tli_big *a) {
    int32_t bits = a->count * 32;
    uint32_t top = a->count ? a->limb[a->count - 1] : 0;
    for (; top && !(top >> 31); top <<= 1) bits--;
    return bits;
}

static int tli_big_compare(const tli_big *a, const tli_big *b) {  // < 0, 0 or > 0
    int32_t i = a->count;
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    while (i > 0 && a->limb[i - 1] == b->limb[i - 1]) i--;
    return !i ? 0 : a->limb[i - 1] < b->limb[i - 1] ? -1 : 1;
}

static void tli_big_add(tli_big *a, const tli_big *b) {
    uint64_t carry = 0;
    int32_t i;
    for (i = 0; i < a->count || i < b->count; i++) {
        carry += (uint64_t)(i < a->count ? a->limb[i] : 0) + (i < b->count ? b->limb[i] : 0);
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    a->count = i;
    if (carry) a->limb[a->count++] = (uint32_t)carry;
}

static void tli_big_subtract(tli_big *a, const tli_big *b) {  // a >= b
    uint64_t borrow = 0;
    int32_t i;
    for (i = 0; i < a->count; i++) {
        uint64_t take = (i < b->count ? b->limb[i] : 0) + borrow;
        borrow = a->limb[i] < take;
        a->limb[i] = (uint32_t)(a->limb[i] - take);
    }
    while (a->count && !a->limb[a->count - 1]) a->count--;
}

// A positive double as 0.d1d2d3... x 10^point; tli_next_digit returns d1, d2, ... in turn. Steele,
// White, How to Print Floating-Point Numbers Accurately, PLDI 1990 (dragon4).
typedef struct tli_decimal {
    tli_big rest, unit;  // the digits still to come are those of rest / unit, which is below 1
    tli_big low, high;   // any number less than low / unit below or high / unit above reads back as this one
    int32_t point;
    int     even;        // 1 = so do the two ends of that range: ties read to the even mantissa
} tli_decimal;

static uint64_t tli_bits_of_f64(double value) {
    uint64_t bits;
    tli_copy(&bits, &value, sizeof bits);
    return bits;
}

// Start the digits of a value. With shortest = 0 the range low .. high is empty, for a fixed number
// of digits.
static void tli_open_decimal(tli_decimal *d, double value, int shortest) {
    uint64_t bits = tli_bits_of_f64(value), mantissa = bits & ((UINT64_C(1) << 52) - 1);
    int32_t biased = (int32_t)(bits >> 52 & 0x7ff), exponent = biased ? biased - 1075 : -1074;
    int wide = shortest && !mantissa && biased > 1;  // a power of two: the double below is half as far away
    int32_t log2, up;
    int order;
    tli_big sum;
    if (biased) mantissa |= UINT64_C(1) << 52;
    d->even = !(mantissa & 1);
    tli_big_set(&d->rest, mantissa);
    tli_big_set(&d->unit, 1);
    tli_big_set(&d->low, (uint64_t)shortest);
    tli_big_set(&d->high, (uint64_t)shortest);
    log2 = exponent + tli_big_bits(&d->rest) - 1;
    up = exponent > 0 ? exponent : 0;
    tli_big_shift(&d->rest, up + 1 + wide);
    tli_big_shift(&d->unit, up - exponent + 1 + wide);
    tli_big_shift(&d->low, up);
    tli_big_shift(&d->high, up + wide);
    // floor(log2 x log10(2)) is exact over this range, and at most 1 below the true exponent
    d->point = (log2 * 30103 - (log2 < 0 ? 99999 : 0)) / 100000 + 1;
    tli_big_scale10(&d->unit, d->point);
    tli_big_scale10(&d->rest, -d->point);
    tli_big_scale10(&d->low, -d->point);
    tli_big_scale10(&d->high, -d->point);
    sum = d->rest;
    tli_big_add(&sum, &d->high);
    order = tli_big_compare(&sum, &d->unit);
    if (order > 0 || (!order && d->even)) {
        tli_big_scale(&d->unit, 10, 0);
        d->point++;
    }
}

static int tli_next_digit(tli_decimal *d) {
    int digit = 0;
    tli_big_scale(&d->rest, 10, 0);
    for (; tli_big_compare(&d->rest, &d->unit) >= 0; digit++) tli_big_subtract(&d->rest, &d->unit);
    return digit;
}

// Whether the remainder after this digit rounds the digit up; half rounds to even.
static int tli_rounds_up(const tli_decimal *d, int digit) {
    tli_big twice = d->rest;
    int order;
    tli_big_shift(&twice, 1);
    order = tli_big_compare(&twice, &d->unit);
    return order > 0 || (!order && (digit & 1));
}

// Write the fewest digits that read back as the same double and, of these, the nearest; at most 17.
static int32_t tli_shortest_digits(double value, char *digits, int32_t *point) {
    tli_decimal d;
    tli_big sum;
    int32_t count = 0;
    int digit, order, down, up;
    tli_open_decimal(&d, value, 1);
    do {
        digit = tli_next_digit(&d);
        tli_big_scale(&d.low, 10, 0);
        tli_big_scale(&d.high, 10, 0);
        order = tli_big_compare(&d.rest, &d.low);
        down = order < 0 || (!order && d.even);
        sum = d.rest;
        tli_big_add(&sum, &d.high);
        order = tli_big_compare(&sum, &d.unit);
        up = order > 0 || (!order && d.even);
        if (up && (!down || tli_rounds_up(&d, digit))) digit++;
        digits[count++] = (char)('0' + digit);
    } while (!down && !up);
    *point = d.point;
    return count;
}

static void tli_put_zeros(tli_writer *w, int32_t count) {
    for (; count > 0; count--) tli_put(w, "0");
}

// Write the shortest text that reads back as the same double, in the forms of serde_json: 0.5, 1.0,
// 1e-7, 1.5e16. The caller handles NaN and infinity.
static void tli_put_f64(tli_writer *w, double value) {
    char digits[20];
    int32_t count, point, whole;
    if (tli_bits_of_f64(value) >> 63) { tli_put(w, "-"); value = -value; }
    if (!tli_bits_of_f64(value)) { tli_put(w, "0.0"); return; }
    count = tli_shortest_digits(value, digits, &point);
    if (point > 16 || point <= -5) {
        tli_put_bytes(w, digits, 1);
        if (count > 1) { tli_put(w, "."); tli_put_bytes(w, digits + 1, (size_t)(count - 1)); }
        tli_put(w, "e");
        tli_put_i64(w, point - 1);
        return;
    }
    whole = point < 0 ? 0 : point < count ? point : count;
    tli_put_bytes(w, digits, (size_t)whole);
    tli_put_zeros(w, point - count);
    tli_put(w, point <= 0 ? "0." : ".");
    tli_put_zeros(w, -point);
    tli_put_bytes(w, digits + whole, (size_t)(count - whole));
    if (whole == count) tli_put(w, "0");
}

#ifndef TL_NO_TEXT
// Write 1 to 99 digits after the point: the exact value rounded half to even, like Rust's {:.1}.
static void tli_put_fixed(tli_writer *w, double value, int32_t decimals) {
    char digits[1 + 309 + 99];  // a 0 in front, to which rounding up may carry
    tli_decimal d;
    int32_t count = 0, i, skip;
    digits[count++] = '0';
    if (tli_bits_of_f64(value) >> 63) { tli_put(w, "-"); value = -value; }
    if (tli_bits_of_f64(value)) {
        tli_open_decimal(&d, value, 0);
        while (count <= d.point + decimals) digits[count++] = (char)('0' + tli_next_digit(&d));
        if (d.point + decimals >= 0 && tli_rounds_up(&d, digits[count - 1])) {
            for (i = count - 1; digits[i] == '9'; i--) digits[i] = '0';
            digits[i]++;
        }
    }
    skip = digits[0] == '0' && count > decimals + 1;
    tli_put_zeros(w, count <= decimals);
    if (count > decimals) tli_put_bytes(w, digits + skip, (size_t)(count - decimals - skip));
    tli_put(w, ".");
    tli_put_zeros(w, decimals - count);
    i = count > decimals ? count - decimals : 0;
    tli_put_bytes(w, digits + i, (size_t)(count - i));
}
#endif

// above / below as the nearest double, ties to even; infinity if it is too large. Changes both
// arguments.
static double tli_divide_big(tli_big *above, tli_big *below) {
    int32_t log2 = tli_big_bits(above) - tli_big_bits(below), places;
    uint64_t bits = 0;
    double value;
    int order;
    tli_big_shift(log2 < 0 ? above : below, log2 < 0 ? -log2 : log2);
    if (tli_big_compare(above, below) < 0) { tli_big_shift(above, 1); log2--; }
    // now above / below is in [1, 2) and the result is that times 2^log2; a denormal has fewer bits
    for (places = log2 < -1022 ? 1075 + log2 : 53; places > 0; places--) {
        bits *= 2;
        if (tli_big_compare(above, below) >= 0) { tli_big_subtract(above, below); bits++; }
        tli_big_shift(above, 1);
    }
    order = places < 0 ? -1 : tli_big_compare(above, below);
    bits += order > 0 || (!order && (bits & 1));
    // the hidden bit adds 1 to the exponent, and so does a carry out of the mantissa
    if (log2 >= -1022) bits += (uint64_t)(log2 + 1022) << 52;
    if (bits > UINT64_C(0x7ff) << 52) bits = UINT64_C(0x7ff) << 52;
    tli_copy(&value, &bits, sizeof value);
    return value;
}

// Read the digits of a JSON number up to its exponent as *number x 10^*power, with *count digits
// after leading zeros. Beyond 800 digits it only matters whether one is not 0: no double, and no
// midpoint between two doubles, has more digits.
static size_t tli_read_digits(const char *text, size_t length, tli_big *number, int64_t *power,
                              int64_t *count) {
    size_t i;
    int after_point = 0, more = 0;
    *power = *count = 0;
    tli_big_set(number, 0);
    for (i = 0; i < length && text[i] != 'e' && text[i] != 'E'; i++) {
        if (text[i] == '.') { after_point = 1; continue; }
        *power -= after_point;
        if (!*count && text[i] == '0') continue;
        if (*count < 800) {
            tli_big_scale(number, 10, (uint32_t)(text[i] - '0'));
            ++*count;
        } else {
            ++*power;
            more |= text[i] != '0';
        }
    }
    if (more) { tli_big_scale(number, 10, 1); ++*count; --*power; }
    return i;
}

// Read a word that is one JSON number, correctly rounded. Returns 0 for any other word and for a
// number beyond the largest double.
static int tli_read_f64(tli_word word, double *value) {
    size_t at = word.length && word.text[0] == '-';
    int64_t power, count, exponent = 0;
    int negative = (int)at, down;
    tli_big above, below;
    *value = 0;
    if (!word.length || tli_number_length(word.text, word.length) != word.length) return 0;
    at += tli_read_digits(word.text + at, word.length - at, &above, &power, &count);
    if (at < word.length) {
        down = word.text[++at] == '-';
        for (at += down || word.text[at] == '+'; at < word.length; at++)
            if (exponent < INT64_C(1000000000000)) exponent = exponent * 10 + (word.text[at] - '0');
        power += down ? -exponent : exponent;
    }
    if (count && power + count > 310) return 0;
    if (count && power + count > -330) {
        tli_big_set(&below, 1);
        tli_big_scale10(&above, power);
        tli_big_scale10(&below, -power);
        *value = tli_divide_big(&above, &below);
        if (tli_bits_of_f64(*value) == UINT64_C(0x7ff) << 52) { *value = 0; return 0; }
    }
    if (negative) *value = -*value;
    return 1;
}
#endif

#ifndef TL_NO_TEXT
// -- reader of lines and words --
//
// "#" starts a comment that ends with its line.

#define TLI_TEXT_LIMIT ((size_t)1 << 30)  // bytes; longer texts are refused

typedef struct tli_reader {
    const char *at, *end;
    const char *line_end;  // of the current line without its comment
    int32_t     line;      // from 1
} tli_reader;

// The start of a text behind a byte order mark, which some editors write in front of UTF-8. A text that is too
// long is not read at all.
static const char *tli_skip_mark(const char *text, size_t length) {
    if (length < 3 || length > TLI_TEXT_LIMIT) return text;
    return TLI_MEMCMP(text, "\xEF\xBB\xBF", 3) == 0 ? text + 3 : text;
}

static tli_reader tli_reader_of(const char *text, size_t length) {
    tli_reader r;
    r.at = r.line_end = tli_skip_mark(text, length);
    r.end = text + length;
    r.line = 0;
    return r;
}

// Go to the next line and leave the rest of this one unread; 0 at the end of the text.
static int tli_next_line(tli_reader *r) {
    if (r->line) {
        while (r->at < r->end && *r->at != '\n') r->at++;
        if (r->at < r->end) r->at++;
    }
    if (r->at >= r->end) return 0;
    r->line++;
    r->line_end = r->at;
    while (r->line_end < r->end && *r->line_end != '\n' && *r->line_end != '#') r->line_end++;
    return 1;
}

// Read the next word of the line; 0 and an empty word at the end of the line.
static int tli_next_word(tli_reader *r, tli_word *word) {
    while (r->at < r->line_end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')) r->at++;
    word->text = r->at;
    while (r->at < r->line_end && *r->at != ' ' && *r->at != '\t' && *r->at != '\r') r->at++;
    word->length = (size_t)(r->at - word->text);
    return word->length > 0;
}

static int tli_word_is(tli_word word, const char *text) {
    return word.length == tli_text_length(text) && TLI_MEMCMP(word.text, text, word.length) == 0;
}

// Cut "key=value" at the first "="; 0 if there is none.
static int tli_cut_word(tli_word word, tli_word *key, tli_word *value) {
    size_t i = 0;
    while (i < word.length && word.text[i] != '=') i++;
    key->text = word.text; key->length = i;
    value->text = word.text + i + (i < word.length);
    value->length = word.length - i - (i < word.length);
    return i < word.length;
}

// Read a word of digits only whose value is below 2^64.
static int tli_read_u64(tli_word word, uint64_t *value) {
    size_t i;
    *value = 0;
    for (i = 0; i < word.length; i++) {
        uint64_t digit = (uint64_t)(unsigned char)word.text[i] - '0';
        if (digit > 9 || *value > (UINT64_MAX - digit) / 10) return 0;
        *value = *value * 10 + digit;
    }
    return word.length > 0;
}

static int tli_read_i32(tli_word word, int32_t *value) {
    uint64_t wide;
    int ok = tli_read_u64(word, &wide) && wide <= INT32_MAX;
    *value = ok ? (int32_t)wide : 0;
    return ok;
}

static tl_result tli_fail_line(tl_env *env, tl_result code, tli_function function, int32_t line,
                               tli_rule rule) {
    tli_sentence s = tli_begin_error(env, code, function, rule, (uint64_t)line, 0);
    if (TLI_ERROR_TEXT) { tli_put(&s.text, "line "); tli_put_i64(&s.text, line); tli_put(&s.text, ": "); }
    return tli_end_error(env, &s, code);
}

// Find the index of a name in a table; 0 if it is not there.
static int tli_parse_name(const char *const *names, int32_t count, const char *text, size_t length,
                          int32_t *value) {
    tli_word word;
    int32_t i;
    word.text = text; word.length = length;
    *value = 0;
    for (i = 0; i < count; i++)
        if (tli_word_is(word, names[i])) { *value = i; return 1; }
    return 0;
}

// The same of a whole text.
static int tli_parse_word(const char *const *names, int32_t count, const char *text, int32_t *value) {
    TL_ASSERT(text);
    return tli_parse_name(names, count, text, tli_text_length(text), value);
}

#if !defined(TL_NO_TRACE) || !defined(TL_NO_PLANNERS)
// The number of characters of a text in UTF-8, up to a limit.
static int32_t tli_count_characters(const char *text, int32_t limit) {
    int32_t count = 0;
    TL_ASSERT(text);
    for (; *text && count < limit; text++) count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}
#endif

// -- JSON reader --
//
// The caller asks for one value after the other. The grammar is that of RFC 8259, without
// extensions. The first error is kept in `result`; after it every loop ends and every value is 0.
//
//     tli_json j = tli_json_open(env, TLI_IN(PARSE_X), text, length);
//     if (tli_json_enter(&j, '{'))
//         while ((key = tli_json_next_key(&j, keys, 2, &seen)) >= 0)   // unknown keys are skipped
//             if (key == 0) x->count = tli_json_u64(&j);
//             else if (tli_json_enter(&j, '['))
//                 while (tli_json_next(&j, NULL)) sum += tli_json_f64(&j);
//     return tli_json_end(&j);
//
// Where values of several types are allowed, tli_json_peek returns the first character of the next
// one.

#define TLI_JSON_DEPTH 32

typedef struct tli_json {
    tl_env     *env;
    tli_function function;
    const char *text, *at, *end;
    uint32_t    objects;  // bit d: the container at depth d is an object
    int32_t     depth;    // containers entered and not left
    int         fresh;    // 1 = no item of this container was read yet
    tl_result   result;   // the first error
} tli_json;

// word: replaces the %s of the rule, "" if it has none.
static tl_result tli_json_fail_word(tli_json *j, tli_rule rule, const char *word) {
    uint64_t line = 1, column = 1;
    const char *p;
    tli_sentence s;
    if (j->result) return j->result;
    for (p = j->text; p < j->at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    s = tli_begin_error(j->env, TL_ERROR_PARSE, j->function, rule, line, column);
    if (TLI_ERROR_TEXT) {
        tli_put(&s.text, "line "); tli_put_u64(&s.text, line);
        tli_put(&s.text, ", column "); tli_put_u64(&s.text, column);
        tli_put(&s.text, ": ");
    }
    tli_put_text(&s, word);
    j->at = j->end;
    j->result = tli_end_error(j->env, &s, TL_ERROR_PARSE);
    return j->result;
}

static tl_result tli_json_fail(tli_json *j, tli_rule rule) { return tli_json_fail_word(j, rule, ""); }

static tli_json tli_json_open(tl_env *env, tli_function function, const char *text, size_t length) {
    tli_json j;
    tli_zero(&j, sizeof j);
    j.env = env;
    j.function = function;
    j.text = j.at = tli_skip_mark(text, length);
    j.end = text + length;
    if (length > TLI_TEXT_LIMIT) tli_json_fail(&j, TLI_RULE(TEXT_IS_LONGER_THAN_2_30_BYTES));
    return j;
}

// The next character that is not white space; 0 at the end.
static char tli_json_peek(tli_json *j) {
    for (; j->at < j->end; j->at++)
        if (*j->at != ' ' && *j->at != '\t' && *j->at != '\n' && *j->at != '\r') break;
    return j->at < j->end ? *j->at : '\0';
}

// Read \uXXXX: 6 characters and the number behind the u; 0 if that is not what comes.
static size_t tli_json_hex(const char *at, const char *end, uint32_t *code) {
    size_t i;
    *code = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u') return 0;
    for (i = 2; i < 6; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return 0;
        *code = *code << 4 | (uint32_t)digit;
    }
    return 6;
}

// The length in bytes of one character of a JSON string, escaped or not, and its code point; 0 if
// it is invalid.
static size_t tli_json_character(const char *at, const char *end, uint32_t *code) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    uint32_t low;
    size_t i;
    if ((unsigned char)*at < 0x20) return 0;
    if (*at != '\\') return tli_utf8_length(at, end, code);
    for (i = 0; letters[i] && end - at > 1; i++)
        if (at[1] == letters[i]) { *code = (unsigned char)meant[i]; return 2; }
    if (!tli_json_hex(at, end, code)) return 0;
    if (*code < 0xd800 || *code > 0xdfff) return 6;
    if (*code > 0xdbff || !tli_json_hex(at + 6, end, &low)) return 0;
    if (low < 0xdc00 || low > 0xdfff) return 0;
    *code = 0x10000 + ((*code & 0x3ff) << 10 | (low & 0x3ff));
    return 12;
}

// Read a string: *raw is the checked text between the quotes, still with its escapes. Compare it
// with tli_json_is.
static int tli_json_string(tli_json *j, tli_word *raw) {
    uint32_t code;
    size_t length = 1;
    raw->text = j->at;
    raw->length = 0;
    if (tli_json_peek(j) != '"') return !tli_json_fail(j, TLI_RULE(EXPECTED_STRING));
    for (raw->text = ++j->at; j->at < j->end && *j->at != '"' && length; j->at += length)
        length = tli_json_character(j->at, j->end, &code);
    if (!length) return !tli_json_fail(j, TLI_RULE(STRING_MAY_NOT_HOLD_THIS));
    if (j->at == j->end) return !tli_json_fail(j, TLI_RULE(STRING_DOES_NOT_END));
    raw->length = (size_t)(j->at++ - raw->text);
    return 1;
}

// Whether a raw string, with its escapes resolved, equals an ASCII name.
static int tli_json_is(tli_word raw, const char *name) {
    const char *at = raw.text, *end = raw.text + raw.length;
    uint32_t code = 0;
    for (; at < end && *name; name++) {
        at += tli_json_character(at, end, &code);
        if (code != (unsigned char)*name) return 0;
    }
    return at == end && !*name;
}

static int32_t tli_json_find(tli_word raw, const char *const *names, int32_t count) {
    int32_t i = 0;
    while (i < count && !tli_json_is(raw, names[i])) i++;
    return i < count ? i : -1;
}

// Enter the object or array that comes next; open is '{' or '['.
static int tli_json_enter(tli_json *j, char open) {
    uint32_t bit;
    if (tli_json_peek(j) != open)
        return !tli_json_fail(j, open == '{' ? TLI_RULE(EXPECTED_OBJECT) : TLI_RULE(EXPECTED_ARRAY));
    if (j->depth == TLI_JSON_DEPTH) return !tli_json_fail(j, TLI_RULE(NESTED_DEEPER_THAN_32_LEVELS));
    bit = (uint32_t)1 << j->depth++;
    j->objects = open == '{' ? j->objects | bit : j->objects & ~bit;
    j->fresh = 1;
    j->at++;
    return 1;
}

// Go to the next item of this container; the caller then reads its value. After the last item the
// container is left and the result is 0. In an object *raw is the key; in an array raw is not used.
static int tli_json_next(tli_json *j, tli_word *raw) {
    int object = j->depth && (j->objects >> (j->depth - 1) & 1), fresh = j->fresh;
    char c;
    if (j->result) return 0;
    c = tli_json_peek(j);
    j->fresh = 0;
    if (c == (object ? '}' : ']')) {
        j->at++;
        j->depth--;
        return 0;
    }
    if (!fresh) {
        if (c != ',') return !tli_json_fail(j, object ? TLI_RULE(EXPECTED_COMMA_OR_BRACE)
                                            : TLI_RULE(EXPECTED_COMMA_OR_BRACKET));
        j->at++;
    }
    if (!object) return 1;
    if (!tli_json_string(j, raw)) return 0;
    if (tli_json_peek(j) != ':') return !tli_json_fail(j, TLI_RULE(EXPECTED_COLON));
    j->at++;
    return 1;
}

static int tli_json_literal(tli_json *j, const char *text) {
    size_t length = tli_text_length(text);
    if ((size_t)(j->end - j->at) < length || TLI_MEMCMP(j->at, text, length) != 0) return 0;
    j->at += length;
    return 1;
}

static int tli_json_number(tli_json *j, tli_word *word) {
    tli_json_peek(j);
    word->text = j->at;
    word->length = tli_number_length(j->at, (size_t)(j->end - j->at));
    if (!word->length) return !tli_json_fail(j, TLI_RULE(EXPECTED_NUMBER));
    j->at += word->length;
    return 1;
}

// Skip a value of any type. It is not recursive, because j->depth counts the open containers.
static void tli_json_skip(tli_json *j) {
    int32_t depth = j->depth;
    tli_word word;
    do {
        char c = tli_json_peek(j);
        if (c == '{' || c == '[') tli_json_enter(j, c);
        else if (c == '"') tli_json_string(j, &word);
        else if (c == '-' || (c >= '0' && c <= '9')) tli_json_number(j, &word);
        else if (!tli_json_literal(j, c == 't' ? "true" : c == 'f' ? "false" : "null"))
            tli_json_fail(j, TLI_RULE(EXPECTED_VALUE));
        while (j->depth > depth && !tli_json_next(j, &word))
            if (j->result) return;
    } while (j->depth > depth && !j->result);
}

// Find the next key of this object that is in names, and return its index; -1 at the end of the
// object. Other keys are skipped with their values. Bit i of *seen is set once names[i] came, and a
// second one is an error; *seen starts as 0.
static int32_t tli_json_next_key(tli_json *j, const char *const *names, int32_t count,
                                 uint32_t *seen) {
    tli_word raw;
    tli_zero(&raw, sizeof raw);
    while (tli_json_next(j, &raw)) {
        int32_t key = tli_json_find(raw, names, count);
        if (key < 0) { tli_json_skip(j); continue; }
        if (*seen >> key & 1) {
            j->at = raw.text;
            tli_json_fail(j, TLI_RULE(THIS_KEY_COMES_TWICE));
            return -1;
        }
        *seen |= (uint32_t)1 << key;
        return key;
    }
    return -1;
}

// The readers of single values return 0 on an error.
static int tli_json_bool(tli_json *j) {
    int on;
    tli_json_peek(j);
    on = tli_json_literal(j, "true");
    if (!on && !tli_json_literal(j, "false")) tli_json_fail(j, TLI_RULE(EXPECTED_TRUE_OR_FALSE));
    return on;
}

static uint64_t tli_json_u64(tli_json *j) {
    tli_word word;
    uint64_t value;
    if (!tli_json_number(j, &word)) return 0;
    if (tli_read_u64(word, &value)) return value;
    j->at = word.text;
    tli_json_fail(j, TLI_RULE(EXPECTED_WHOLE_NUMBER_FROM_0_TO_2_64_1));
    return 0;
}

#ifndef TL_NO_PLANNERS
static double tli_json_f64(tli_json *j) {
    tli_word word;
    double value;
    if (!tli_json_number(j, &word)) return 0;
    if (tli_read_f64(word, &value)) return value;
    j->at = word.text;
    tli_json_fail(j, TLI_RULE(NUMBER_IS_TOO_LARGE));
    return 0;
}
#endif

static int32_t tli_json_name(tli_json *j, const char *const *names, int32_t count) {
    tli_word raw;
    int32_t value;
    if (!tli_json_string(j, &raw)) return 0;
    value = tli_json_find(raw, names, count);
    if (value >= 0) return value;
    j->at = raw.text;
    tli_json_fail(j, TLI_RULE(UNKNOWN_NAME));
    return 0;
}

// End the text: only white space may follow. Returns the first error, or TL_OK.
static tl_result tli_json_end(tli_json *j) {
    if (j->result) return j->result;
    tli_json_peek(j);
    return j->at < j->end ? tli_json_fail(j, TLI_RULE(TEXT_AFTER_VALUE)) : j->result;
}

// Write a text in quotes. A byte that is not part of valid UTF-8 becomes U+FFFD, so the result is
// always valid JSON.
static void tli_put_json_text(tli_writer *w, const char *text) {
    static const char hex[] = "0123456789abcdef";
    const char *end = text + tli_text_length(text);
    uint32_t code = 0;
    tli_put(w, "\"");
    while (text < end) {
        size_t length = tli_utf8_length(text, end, &code);
        if (!length) {
            tli_put(w, "\\ufffd");
        } else if (code < 0x20) {
            tli_put(w, "\\u00");
            tli_put_bytes(w, hex + (code >> 4), 1);
            tli_put_bytes(w, hex + (code & 15), 1);
        } else {
            if (code == '"' || code == '\\') tli_put(w, "\\");
            tli_put_bytes(w, text, length);
        }
        text += length ? length : 1;
    }
    tli_put(w, "\"");
}

// -- stream --
//
// A small buffer in front of a sink. After the first error of the sink nothing more is sent.

typedef struct tli_stream {
    tl_sink   sink;
    tl_result result;   // of the sink
    uint64_t  sent;     // bytes that the sink took
    size_t    used;     // of buf
    char      buf[512];
} tli_stream;

static void tli_open_stream(tli_stream *s, tl_sink sink) {
    s->sink = sink;
    s->result = TL_OK;
    s->sent = 0;
    s->used = 0;
}

static void tli_flush(tli_stream *s) {
    if (!s->result && s->used) {
        s->result = (s->sink.write)(s->sink.user, s->buf, s->used);
        if (!s->result) s->sent += s->used;
    }
    s->used = 0;
}

static void tli_send_bytes(tli_stream *s, const char *text, size_t length) {
    size_t i;
    for (i = 0; i < length; i++) {
        if (s->used == sizeof s->buf) tli_flush(s);
        s->buf[s->used++] = text[i];
    }
}

static void tli_send(tli_stream *s, const char *text) { tli_send_bytes(s, text, tli_text_length(text)); }

static void tli_send_u64(tli_stream *s, uint64_t value) {
    char digits[24];
    tli_writer w = tli_writer_of(digits, sizeof digits);
    tli_put_u64(&w, value);
    tli_send_bytes(s, digits, w.length);
}

static void tli_send_i32(tli_stream *s, int32_t value) {
    if (value < 0) tli_send(s, "-");
    tli_send_u64(s, value < 0 ? (uint64_t)0 - (uint64_t)(int64_t)value : (uint64_t)value);
}

// Send value / 10^places with exactly `places` decimals.
static void tli_send_decimal(tli_stream *s, uint64_t value, int places) {
    uint64_t scale = 1;
    int i;
    for (i = 0; i < places; i++) scale *= 10;
    tli_send_u64(s, value / scale);
    if (places) tli_send(s, ".");
    for (value %= scale; scale > 1; value %= scale) {
        scale /= 10;
        tli_send_u64(s, value / scale);
    }
}

static tl_result tli_close_stream(tli_stream *s, tl_env *env, tli_function function) {
    tli_flush(s);
    return s->result ? tli_fail_sink(env, s->result, function, s->sent) : TL_OK;
}

// -- sizes as text --

static const char *const tli_byte_units[] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB" };

// The power of 1024 of the largest unit that is not above `bytes`.
static int tli_find_byte_unit(uint64_t bytes) {
    int unit = 0;
    while (unit < 6 && bytes >> (10 * unit + 10)) unit++;
    return unit;
}

// bytes * factor / 1024^unit, rounded to nearest.
static uint64_t tli_scale_bytes_to(uint64_t bytes, int unit, uint64_t factor) {
    int bits = 10 * unit;
    uint64_t whole = bytes >> bits, rest = bytes & ((UINT64_C(1) << bits) - 1);
    if (bits > 40) { rest >>= bits - 40; bits = 40; }  // so that rest * factor fits
    return whole * factor + (bits ? (rest * factor + (UINT64_C(1) << (bits - 1))) >> bits : 0);
}

// Send a size with three significant digits: 1.25 MiB, 12.0 MiB, 823 KiB; 1000 to 1023 and bytes are whole.
static void tli_send_size(tli_stream *s, uint64_t bytes) {
    int unit = tli_find_byte_unit(bytes), places = 2;
    uint64_t value = tli_scale_bytes_to(bytes, unit, 100);
    if (value >= 1000) { value = tli_scale_bytes_to(bytes, unit, 10); places = 1; }
    if (!unit || value >= 1000) { value = tli_scale_bytes_to(bytes, unit, 1); places = 0; }
    if (value == 1024 && places == 0 && unit < 6) { unit++; value = 100; places = 2; }
    tli_send_decimal(s, value, places);
    tli_send(s, tli_byte_units[unit]);
}
#endif  // TL_NO_TEXT
#endif  // TL_STRATEGY_IMPLEMENTATION

