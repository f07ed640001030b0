/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of [comm NAME] and [tune NAME]: reading, copying, comparing, holding. */
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "shim/profile/reader.h"

void condition_any(struct comm_condition *c)
{
    *c = (struct comm_condition){.ranks_max = INT_MAX, .nodes_max = INT_MAX, .index_max = INT_MAX};
}

int condition_copy(struct comm_condition *to, const struct comm_condition *from)
{
    *to = *from;
    to->name = from->name ? strdup(from->name) : NULL;
    to->parent = from->parent ? strdup(from->parent) : NULL;
    if ((from->name && !to->name) || (from->parent && !to->parent)) {
        condition_free(to);
        return -1;
    }
    return 0;
}

void condition_free(struct comm_condition *c)
{
    free(c->name);
    free(c->parent);
    c->name = c->parent = NULL;
}

static bool pattern_covers(const char *a, const char *b)
{
    return !a || (b && !strcmp(a, b));
}

bool condition_covers(const struct comm_condition *a, const struct comm_condition *b)
{
    return a->ranks_min <= b->ranks_min && a->ranks_max >= b->ranks_max &&
           a->nodes_min <= b->nodes_min && a->nodes_max >= b->nodes_max &&
           a->index_min <= b->index_min && a->index_max >= b->index_max &&
           pattern_covers(a->name, b->name) && pattern_covers(a->parent, b->parent);
}

static int read_range(struct reader *r, const char *key, const char *text, int line, int *min,
                      int *max)
{
    /* Communicators are counted from 0, ranks and nodes from 1. */
    int least = !strcmp(key, "index") ? 0 : 1;

    if (value_range(text, least, min, max))
        return reader_error(r, line,
                            "%s = %s: write a number (8), a range (2-8) or an open one "
                            "(4-), from %d on",
                            key, text, least);
    /* All there are: as if nothing were said. */
    if (*min == least && *max == INT_MAX)
        *min = 0;
    return 0;
}

int condition_key(struct reader *r, struct comm_condition *c, const char *key, const char *raw,
                  int line)
{
    struct clean_value v;
    bool name = !strcmp(key, "name"), parent = !strcmp(key, "parent");
    int rc = 0;

    if (!name && !parent && strcmp(key, "ranks") && strcmp(key, "nodes") && strcmp(key, "index"))
        return 1;
    r->conditions++;
    rc = reader_clean(r, key, raw, true, line, &v);
    if (rc)
        return rc > 0 ? 0 : rc;
    if (name || parent) {
        char **where = name ? &c->name : &c->parent;
        free(*where);
        *where = v.text;
        return 0;
    }
    if (*key == 'r')
        rc = read_range(r, key, v.text, line, &c->ranks_min, &c->ranks_max);
    else if (*key == 'n')
        rc = read_range(r, key, v.text, line, &c->nodes_min, &c->nodes_max);
    else
        rc = read_range(r, key, v.text, line, &c->index_min, &c->index_max);
    free(v.text);
    return rc;
}

static bool in_range(int n, int min, int max)
{
    return n >= min && n <= max;
}

/* nodes is -1 while it is not known: holds only where nothing is asked of it. */
/* What is not known yet (-1) holds only where nothing is asked of it. */
static bool known_and_in(int n, int least, int most)
{
    return (least <= 0 && most == INT_MAX) || (n >= 0 && in_range(n, least, most));
}

bool condition_holds(const struct comm_condition *c, const struct comm_facts *f)
{
    if (!known_and_in(f->ranks, c->ranks_min, c->ranks_max) ||
        !known_and_in(f->index, c->index_min, c->index_max) ||
        !known_and_in(f->nodes, c->nodes_min, c->nodes_max))
        return false;
    if (c->name && fnmatch(c->name, f->name ? f->name : "", 0))
        return false;
    if (!c->parent)
        return true;
    if (!*c->parent)
        return !f->parent;
    return f->parent && !fnmatch(c->parent, f->parent, 0);
}
