/* SPDX-License-Identifier: Apache-2.0 */
/* [tune] and [tune NAME]: `allreduce 0-64K = ring ll channels=2 chunk=128K`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shim/base/grow.h"
#include "shim/base/names.h"
#include "shim/base/size.h"
#include "shim/profile/choice.h"
#include "shim/profile/reader.h"

#define BOUND_MOST (1ull << 50) /* no message is larger; keeps a key short enough for inih */
#define CHANNELS_MOST 1024      /* NCCL has 64 at most; the tuner caps, `check` says so */

static const char *const words[] = {
#define X(sym, num, text, nccl) text,
    NCCLSHIM_ALGOS(X) NCCLSHIM_PROTOS(X)
#undef X
        "channels=",
    "chunk=", NULL};

int section_tune_start(struct reader *r, int line)
{
    (void)line;
    condition_free(&r->when);
    condition_any(&r->when);
    r->tune_first = r->p->tune_count;
    return 0;
}

/* "64K" -> 64K-64K, "64K-1M", "-64K", "1M-". */
static int read_bounds(const char *text, uint64_t *min, uint64_t *max)
{
    char low[SIZE_TEXT_MAX] = "";
    const char *dash = strchr(text, '-');
    size_t n = dash ? (size_t)(dash - text) : strlen(text);

    if (n >= sizeof(low))
        return -1;
    memcpy(low, text, n);
    *min = 0;
    *max = UINT64_MAX;
    if ((*low && size_parse(low, min)) || (!*low && !dash))
        return -1;
    if (!dash)
        *max = *min;
    else if (dash[1] && size_parse(dash + 1, max))
        return -1;
    if (*min > BOUND_MOST || (*max > BOUND_MOST && *max != UINT64_MAX))
        return -1;
    return *min > *max || (dash && !*low && !dash[1]) ? -1 : 0;
}

static int read_op(struct reader *r, const char *word, int line, int *op)
{
    const char *ops[CHOICE_OPS + 1] = {NULL};
    const char *near;

    *op = op_parse(word);
    if (*op >= 0 && choice_index(*op) >= 0)
        return 0;
    if (*op >= 0)
        return reader_error(r, line,
                            "NCCL asks no tuner about %s, only about all_reduce, "
                            "all_gather, reduce_scatter, broadcast and reduce",
                            op_name((unsigned)*op));
    for (int i = 0; i < CHOICE_OPS; i++)
        ops[i] = op_name((unsigned)choice_ops[i]);
    near = nearest_name(word, ops);
    return reader_error(r, line,
                        "[tune]: '%s' is no operation and no condition%s%s%s; a rule reads "
                        "allreduce 0-64K = ring ll",
                        word, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* The key: an operation, then the sizes or nothing. 0, 1 (told already), -1. */
static int read_key(struct reader *r, const char *key, int line, struct tune_rule *t)
{
    char copy[64], *save = NULL, *op, *bounds, *more;
    int before = r->errors;

    snprintf(copy, sizeof(copy), "%s", key);
    op = strtok_r(copy, " \t", &save);
    bounds = strtok_r(NULL, " \t", &save);
    more = strtok_r(NULL, " \t", &save);
    if (read_op(r, op, line, &t->op))
        return -1;
    t->bytes_max = UINT64_MAX;
    if (r->errors == before &&
        (more || (bounds && read_bounds(bounds, &t->bytes_min, &t->bytes_max))) &&
        reader_error(r, line,
                     "'%s': write the sizes as 0-64K, 64K-1M, 1M- or 43008 (both ends "
                     "count)",
                     key))
        return -1;
    return r->errors > before;
}

static int twice(struct reader *r, int line, const char *what, const char *word)
{
    return reader_error(r, line, "'%s': a second %s in one rule", word, what);
}

static int read_word(struct reader *r, const char *word, int line, struct tune_rule *t)
{
    const char *near;
    int n;

    if (!strncasecmp(word, "channels=", 9)) {
        if (t->channels)
            return twice(r, line, "number of channels", word);
        if (value_int(word + 9, 1, CHANNELS_MOST, &t->channels))
            return reader_error(r, line, "%s: write a number of channels from 1 to 64", word);
        return 0;
    }
    if (!strncasecmp(word, "chunk=", 6)) {
        if (t->chunk_bytes)
            return twice(r, line, "chunk size", word);
        if (size_parse(word + 6, &t->chunk_bytes) || !t->chunk_bytes || t->chunk_bytes > 1u << 30)
            return reader_error(r, line, "%s: write a size like 128K, up to 1G", word);
        return 0;
    }
    if ((n = algo_parse(word)) >= 0) {
        if (t->algo >= 0)
            return twice(r, line, "algorithm", word);
        t->algo = n;
        return 0;
    }
    if ((n = proto_parse(word)) >= 0) {
        if (t->proto >= 0)
            return twice(r, line, "protocol", word);
        t->proto = n;
        return 0;
    }
    near = nearest_name(word, words);
    return reader_error(r, line, "no algorithm or protocol is called '%s'%s%s%s", word,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* What NCCL has no code for can't be asked of it. */
static int check_pair(struct reader *r, const struct tune_rule *t, int line)
{
    uint8_t protos;

    if (t->algo < 0)
        return 0;
    protos = choice_protos_of(t->op, t->algo);
    if (!protos)
        return reader_error(r, line, "NCCL has no %s for %s", algo_name((unsigned)t->algo),
                            op_name((unsigned)t->op));
    if (t->proto >= 0 && !(protos & 1u << t->proto))
        return reader_error(r, line, "%s runs with the Simple protocol only",
                            algo_name((unsigned)t->algo));
    return 0;
}

static int read_value(struct reader *r, char *text, int line, struct tune_rule *t)
{
    char *save = NULL;
    int before = r->errors;

    t->algo = t->proto = -1;
    for (char *w = strtok_r(text, " \t", &save); w; w = strtok_r(NULL, " \t", &save))
        if (read_word(r, w, line, t))
            return -1;
    if (r->errors > before)
        return 0;
    if (t->algo < 0 && t->proto < 0 && !t->channels && !t->chunk_bytes)
        return reader_error(r, line,
                            "the rule asks for nothing; write an algorithm, a protocol, "
                            "channels=N or chunk=SIZE");
    return check_pair(r, t, line);
}

static int add_rule(struct reader *r, const struct tune_rule *read, const char *key,
                    const char *value, int line)
{
    struct tune_rule *t = GROW(r->p->tune, r->p->tune_count);

    if (!t)
        return reader_no_memory(r);
    *t = *read;
    condition_any(&t->when);
    t->label = strdup(r->label);
    t->place = (struct place){r->file, line};
    if (asprintf(&t->text, "%s = %s", key, value) < 0)
        t->text = NULL;
    return t->label && t->text ? 0 : reader_no_memory(r);
}

int section_tune_key(struct reader *r, const char *key, const char *raw, int line)
{
    struct tune_rule t = {.op = -1};
    struct clean_value v;
    char *copy;
    int before = r->errors;
    int rc = *r->label ? condition_key(r, &r->when, key, raw, line) : 1;

    if (rc != 1)
        return rc;
    rc = reader_clean(r, key, raw, true, line, &v);
    if (rc)
        return rc > 0 ? 0 : rc;
    rc = read_key(r, key, line, &t);
    copy = strdup(v.text);
    if (rc == 0 && !copy)
        rc = reader_no_memory(r);
    if (rc == 0)
        rc = read_value(r, copy, line, &t);
    if (rc == 0 && r->errors == before)
        rc = add_rule(r, &t, key, v.text, line);
    free(copy);
    free(v.text);
    return rc > 0 ? 0 : rc;
}

/* The conditions count for every rule of the section, wherever in it they stand. */
int section_tune_end(struct reader *r)
{
    if (*r->label && !r->conditions)
        return reader_error(r, r->section_line,
                            "[tune %s] has no condition (ranks, name, parent, "
                            "nodes, index); rules for all communicators "
                            "stand in [tune]",
                            r->label);
    for (size_t i = r->tune_first; i < r->p->tune_count; i++) {
        struct tune_rule *t = &r->p->tune[i];
        const struct tune_rule *by;
        if (condition_copy(&t->when, &r->when))
            return reader_no_memory(r);
        by = tune_rule_shadowed(r->p, t);
        if (by && reader_error(r, t->place.line,
                               "the rule is never used: the rule in line %d%s covers all its "
                               "sizes first",
                               by->place.line,
                               by->bytes_max >= t->bytes_max ? "" : " with those behind it"))
            return -1;
    }
    return 0;
}
