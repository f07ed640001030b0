/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/ini.h"

#include <ini.h>
#include <stdbool.h>
#include <string.h>

#include "shim/profile/source.h"

struct walk {
    const struct ini_events *events;
    const char *next, *end;
    int line;
    bool stopped;
};

/* Debian's inih takes its options from variables of its own (those of a static copy: ours alone).
 */
static void set_options(void)
{
    ini_use_stack = false;
    ini_initial_alloc = SOURCE_LINE_MAX + 16;
    ini_max_line = SOURCE_LINE_MAX + 16;
    ini_allow_realloc = false;
    ini_allow_multiline = false;
    ini_allow_inline_comments = false;
    ini_allow_no_value = false;
    ini_allow_bom = true;
    ini_stop_on_first_error = true;
}

static void section_event(struct walk *w, const char *line)
{
    char name[SOURCE_NAME_MAX + 1];
    const char *from = line + 1, *to = strchr(line, ']');

    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    memcpy(name, from, (size_t)(to - from));
    name[to - from] = '\0';
    if (w->events->section(w->events->user, name, w->line))
        w->stopped = true;
}

/* inih asks for one line; it has handled the line before by then. */
static char *next_line(char *buf, int size, void *user)
{
    struct walk *w = user;
    const char *stop;
    size_t n;

    if (w->next >= w->end || w->stopped)
        return NULL;
    stop = memchr(w->next, '\n', (size_t)(w->end - w->next));
    n = (size_t)((stop ? stop + 1 : w->end) - w->next);
    if (n >= (size_t)size) { /* not after source_check */
        w->stopped = true;
        return NULL;
    }
    memcpy(buf, w->next, n);
    buf[n] = '\0';
    w->next += n;
    w->line++;
    if (buf[0] == '[' || (w->line == 1 && !strncmp(buf, "\xef\xbb\xbf[", 4)))
        section_event(w, strchr(buf, '['));
    return w->stopped ? NULL : buf;
}

static int key_event(void *user, const char *section, const char *key, const char *value)
{
    struct walk *w = user;

    (void)section; /* cut at 49 letters by inih; section_event has the whole */
    if (!w->stopped && w->events->key(w->events->user, key, value, w->line))
        w->stopped = true;
    return !w->stopped;
}

int ini_walk(const char *bytes, size_t size, const struct ini_events *events)
{
    struct walk w = {.events = events, .next = bytes, .end = bytes + size};

    set_options();
    if (ini_parse_stream(next_line, &w, key_event, &w))
        return -1;
    return w.stopped ? -1 : 0;
}
