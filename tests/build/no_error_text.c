// TL_NO_ERROR_TEXT: no sentences, and nothing else changes. Many calls that fail give the same codes, sites and values as
// they do with text, at the same places of tl_error.
// flags: tests/support/provoke.c
// lang: c
#include <stdio.h>

#define TL_NO_ERROR_TEXT
#define PROVOKE provoke_without_text
#include "../support/provoke.c"

static int differ(const provoked *a, const provoked *b) {
    if (a->code == b->code && a->site == b->site && a->values[0] == b->values[0] && a->values[1] == b->values[1] &&
        a->has_text && !b->has_text && a->logged && !b->logged) return 0;
    printf("%s: code %d site %x values %llu %llu text %d log %d, without text code %d site %x values %llu %llu text %d log %d\n",
           a->call, a->code, (unsigned)a->site, (unsigned long long)a->values[0], (unsigned long long)a->values[1], a->has_text,
           a->logged, b->code, (unsigned)b->site, (unsigned long long)b->values[0], (unsigned long long)b->values[1], b->has_text,
           b->logged);
    return 1;
}

int main(void) {
    static provoked_list with, without;
    int i, k, sites = 0, wrong = 0;
    provoke_with_text(&with);
    provoke_without_text(&without);
    if (with.size != without.size || with.code_at != without.code_at || with.site_at != without.site_at ||
        with.values_at != without.values_at || with.text_at != without.text_at || with.env_size != without.env_size)
        wrong += printf("the layout of tl_error depends on its text\n");
    if (with.unexpected || without.unexpected || with.count != without.count)
        wrong += printf("%d and %d calls failed, %d and %d did not as expected\n", with.count, without.count, with.unexpected,
                        without.unexpected);
    for (i = 0; i < with.count && i < without.count; i++) {
        wrong += differ(&with.items[i], &without.items[i]);
        for (k = 0; k < i && with.items[k].site != with.items[i].site; k++) continue;
        sites += k == i;
    }
    printf("%d calls failed at %d sites\n", with.count, sites);
    if (sites < 100) wrong += printf("too few\n");
    return wrong != 0;
}
