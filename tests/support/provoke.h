// Calls that fail, in every section: provoke.c makes them. It is compiled with and without the text of errors.
#ifndef PROVOKE_H
#define PROVOKE_H

#include <stddef.h>
#include <stdint.h>

typedef struct provoked {
    const char *call;       // the call, as it stands in the source
    int         code;
    uint32_t    site;
    uint64_t    values[2];
    int         has_text, logged;
} provoked;

#define PROVOKED_MOST 256

typedef struct provoked_list {
    provoked items[PROVOKED_MOST];
    int      count;
    int      unexpected;     // calls that did not fail
    size_t   size, code_at, site_at, values_at, text_at;  // of tl_error
    size_t   env_size;
} provoked_list;

void provoke_with_text(provoked_list *list);
void provoke_without_text(provoked_list *list);

#endif
