/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workload as a file: one line a thing, unknown words refused with their line. Lines are short
 * and few kinds, so this is not INI: the order of the steps is what it is about.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shim/prove/bench/workload.h"

#define FILE_BYTES_MAX (64u << 20)
#define WORDS 16

struct reader {
    struct workload *w;
    const char *file;
    int line;
    uint32_t graph; /* of the steps that follow */
    uint64_t runs;
    bool block;     /* `eager` or `graph` was seen */
    struct error *e;
};

#define REFUSE(r, ...) error_set((r)->e, (r)->file, (r)->line, __VA_ARGS__)

static int number(struct reader *r, const char *key, const char *text, uint64_t least,
                  uint64_t most, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno || end == text || *end || !isdigit((unsigned char)text[0]) || *out < least ||
        *out > most)
        return REFUSE(r, "%s: '%s' is no number from %" PRIu64 " to %" PRIu64, key, text, least,
                      most);
    return 0;
}

/* ---- communicators --------------------------------------------------------------------------- */

static int comm_index(const struct workload *w, const char *name)
{
    for (uint32_t i = 0; i < w->comm_count; i++)
        if (!strcmp(w->comms[i].name, name))
            return (int)i;
    return -1;
}

static int read_group(struct reader *r, struct workload_comm *c, char *word)
{
    uint64_t rank;

    for (char *p; (p = strsep(&word, ","));) { /* an empty one is no number, and refused */
        if (number(r, "comm", p, 0, WORKLOAD_RANKS - 1, &rank) < 0)
            return -1;
        if (c->group_of[rank] >= 0)
            return REFUSE(r, "comm: rank %d is in two groups of one communicator", (int)rank);
        c->group_of[rank] = (int16_t)c->groups;
    }
    c->groups++;
    return 0;
}

static int read_comm(struct reader *r, char **words, int count)
{
    struct workload_comm *c;
    int i;

    if (count < 3)
        return REFUSE(r, "comm needs a name, and `all` or groups: comm tp all, comm ep 0,1 2,3");
    if (comm_index(r->w, words[1]) >= 0 || strlen(words[1]) >= WORKLOAD_NAME)
        return REFUSE(r, "comm: the name '%s' is taken or too long", words[1]);
    i = workload_add_comm(r->w, words[1]);
    if (i < 0)
        return REFUSE(r, "more than %d communicators", WORKLOAD_COMMS);
    if (count == 3 && !strcmp(words[2], "all"))
        return 0;
    c = &r->w->comms[i];
    memset(c->group_of, 0xff, sizeof(c->group_of));
    for (int k = 2; k < count; k++)
        if (read_group(r, c, words[k]) < 0)
            return -1;
    return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int yes_no(struct reader *r, const char *key, const char *text, bool *out)
{
    *out = !strcmp(text, "yes");
    return *out || !strcmp(text, "no") ? 0 : REFUSE(r, "%s is yes or no, not '%s'", key, text);
}

/* One key=value of a step. */
static int read_key(struct reader *r, struct workload_step *s, uint64_t *times, char *word)
{
    char *value = strchr(word, '=');
    uint64_t n = 0;
    int found;

    if (!value)
        return REFUSE(r, "'%s' is no KEY=VALUE", word);
    *value++ = '\0';
    if (!strcmp(word, "count"))
        return number(r, word, value, 1, 1ull << 40, &s->count);
    if (!strcmp(word, "gap_ns"))
        return number(r, word, value, 0, 10000000000ull, &s->gap_ns);
    if (!strcmp(word, "times"))
        return number(r, word, value, 1, WORKLOAD_STEPS, times);
    if (!strcmp(word, "runs"))
        return s->graph ? REFUSE(r, "runs stands at the graph, not at its steps")
                        : number(r, word, value, 1, UINT32_MAX, &s->runs);
    if (!strcmp(word, "in_place"))
        return yes_no(r, word, value, &s->in_place);
    if (!strcmp(word, "root") || !strcmp(word, "group")) {
        if (number(r, word, value, 0, UINT32_MAX / 2, &n) < 0)
            return -1;
        if (word[0] == 'r')
            s->root = (int32_t)n;
        else
            s->group = (uint32_t)n;
        return 0;
    }
    if (!strcmp(word, "redop")) {
        found = redop_parse(value);
        s->redop = (uint8_t)found;
        return found >= 0 ? 0 : REFUSE(r, "redop: '%s' is none of sum, prod, max, min, avg", value);
    }
    if (!strcmp(word, "comm")) {
        found = comm_index(r->w, value);
        s->comm = (uint32_t)found;
        return found >= 0 ? 0 : REFUSE(r, "comm: no line above names a communicator '%s'", value);
    }
    return REFUSE(
        r, "a step has no '%s' (count, comm, redop, root, gap_ns, group, in_place, times, runs)",
        word);
}

static int read_step(struct reader *r, char **words, int count)
{
    struct workload_step s = {.redop = REDOP_SUM, .graph = r->graph, .runs = r->runs};
    uint64_t times = 1;
    int op, dtype;

    if (count < 4)
        return REFUSE(r, "a step needs an operation, a type and count=N");
    op = op_parse(words[1]);
    dtype = dtype_parse(words[2]);
    if (op < 0 || !workload_op_playable((unsigned)op))
        return REFUSE(r, "'%s' is no operation that can be played", words[1]);
    if (dtype < 0)
        return REFUSE(r, "'%s' is no type", words[2]);
    if (!r->w->comm_count && workload_add_comm(r->w, "world") < 0)
        return -1;
    s.op = (uint8_t)op;
    s.dtype = (uint8_t)dtype;
    for (int k = 3; k < count; k++)
        if (read_key(r, &s, &times, words[k]) < 0)
            return -1;
    if (!s.count)
        return REFUSE(r, "the step has no count=N");
    if (s.in_place && s.op == OP_ALL_TO_ALL)
        return REFUSE(r, "all_to_all can't be done in place");
    while (times--)
        if (workload_add_step(r->w, &s) < 0)
            return REFUSE(r, "too many steps, or out of memory");
    return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int read_block(struct reader *r, char **words, int count)
{
    uint64_t n;

    r->block = true;
    r->graph = 0;
    r->runs = 1;
    if (!strcmp(words[0], "eager"))
        return count == 1 ? 0 : REFUSE(r, "`eager` stands alone on its line");
    if (count < 2 || count > 3 || number(r, "graph", words[1], 1, UINT32_MAX, &n) < 0)
        return REFUSE(r, "write: graph NUMBER [runs=N]");
    for (uint32_t i = 0; i < r->w->step_count; i++)
        if (r->w->steps[i].graph == n)
            return REFUSE(r, "graph %u was given before", (unsigned)n);
    r->graph = (uint32_t)n;
    if (count == 2)
        return 0;
    if (strncmp(words[2], "runs=", 5) != 0)
        return REFUSE(r, "a graph has no '%s'; write: graph NUMBER [runs=N]", words[2]);
    return number(r, "runs", words[2] + 5, 1, UINT32_MAX, &r->runs);
}

static int read_ranks(struct reader *r, char **words, int count)
{
    uint64_t n = 0;

    if (count != 2)
        return REFUSE(r, "write: ranks N");
    if (number(r, "ranks", words[1], 1, WORKLOAD_RANKS, &n) < 0)
        return -1;
    r->w->ranks = (uint32_t)n;
    return 0;
}

static int read_words(struct reader *r, char **words, int count)
{
    if (!strcmp(words[0], "comm"))
        return read_comm(r, words, count);
    if (!strcmp(words[0], "eager") || !strcmp(words[0], "graph"))
        return read_block(r, words, count);
    if (!strcmp(words[0], "ranks"))
        return read_ranks(r, words, count);
    if (!strcmp(words[0], "pass") && count == 2)
        return yes_no(r, "pass", words[1], &r->w->sequence);
    if (strcmp(words[0], "step") != 0)
        return REFUSE(r, "a line begins with comm, ranks, pass, eager, graph or step, not '%s'",
                      words[0]);
    if (!r->block)
        return REFUSE(r, "a line `eager` or `graph N` must come before the first step");
    return read_step(r, words, count);
}

static int read_line(struct reader *r, char *line)
{
    char *words[WORDS + 1], *save = NULL;
    int count = 0;

    line[strcspn(line, "#")] = '\0';
    for (char *p = strtok_r(line, " \t\r", &save); p; p = strtok_r(NULL, " \t\r", &save)) {
        if (count == WORDS)
            return REFUSE(r, "more than %d words on one line", WORDS);
        words[count++] = p;
    }
    if (!count)
        return 0;
    if (r->line >= 0 && !strcmp(words[0], "workload"))
        return REFUSE(r, "`workload 1` stands once, on the first line");
    return read_words(r, words, count);
}

int workload_parse(struct workload *w, const char *text, const char *file, struct error *e)
{
    struct reader r = {.w = w, .file = file, .line = 1, .runs = 1, .e = e};
    char *copy = strdup(text), *at = copy, *line;
    int rc = 0;

    workload_init(w);
    if (!copy)
        return error_set(e, file, 0, "out of memory");
    w->sequence = true;
    snprintf(w->source, sizeof(w->source), "file %s", file);
    line = strsep(&at, "\n");
    line[strcspn(line, "\r")] = '\0';
    if (strcmp(line, "workload 1") != 0)
        rc = REFUSE(&r, "the first line of a workload is `workload 1`");
    while (rc == 0 && (line = strsep(&at, "\n"))) {
        r.line++;
        rc = read_line(&r, line);
    }
    if (rc == 0 && !w->step_count)
        rc = error_set(e, file, 0, "the workload has no step");
    free(copy);
    if (rc < 0)
        workload_free(w);
    return rc;
}

int workload_read(struct workload *w, const char *path, struct error *e)
{
    FILE *in = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    ssize_t n;
    int rc;

    if (!in)
        return error_set(e, path, 0, "can't read the workload: %s", strerror(errno));
    n = getdelim(&text, &size, '\0', in);
    if (n < 0 && ferror(in))
        rc = error_set(e, path, 0, "can't read the workload: %s", strerror(errno));
    else if (n > (ssize_t)FILE_BYTES_MAX || fgetc(in) != EOF)
        rc = error_set(e, path, 0, "no workload: it is too long, or holds zero bytes");
    else
        rc = workload_parse(w, n < 0 ? "" : text, path, e);
    free(text);
    fclose(in);
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_comm(const struct workload_comm *c, FILE *out)
{
    fprintf(out, "comm %s%s", c->name, c->groups ? "" : " all");
    for (uint32_t g = 0; g < c->groups; g++) {
        bool first = true;

        for (int r = 0; r < WORKLOAD_RANKS; r++)
            if (c->group_of[r] == (int)g) {
                fprintf(out, "%s%d", first ? " " : ",", r);
                first = false;
            }
    }
    fputc('\n', out);
}

static bool same_line(const struct workload_step *a, const struct workload_step *b)
{
    return workload_same_call(a, b) && a->group == b->group && a->graph == b->graph &&
           a->gap_ns == b->gap_ns && a->runs == b->runs;
}

static void write_step(const struct workload *w, const struct workload_step *s, uint32_t times,
                       FILE *out)
{
    fprintf(out, "step %s %s count=%" PRIu64 " comm=%s", op_name(s->op), dtype_name(s->dtype),
            s->count, w->comms[s->comm].name);
    if (s->redop != REDOP_SUM)
        fprintf(out, " redop=%s", redop_name(s->redop));
    if (s->root)
        fprintf(out, " root=%d", s->root);
    if (s->gap_ns)
        fprintf(out, " gap_ns=%" PRIu64, s->gap_ns);
    if (s->group)
        fprintf(out, " group=%u", s->group);
    if (s->in_place)
        fprintf(out, " in_place=yes");
    if (!s->graph && s->runs != 1)
        fprintf(out, " runs=%" PRIu64, s->runs);
    if (times > 1)
        fprintf(out, " times=%u", times);
    fputc('\n', out);
}

int workload_write(const struct workload *w, FILE *out)
{
    fprintf(out, "workload 1\n# from: %s\n", w->source);
    if (w->left_out[0])
        fprintf(out, "# left out: %s\n", w->left_out);
    if (w->ranks)
        fprintf(out, "ranks %u\n", w->ranks);
    fprintf(out, "pass %s\n", w->sequence ? "yes" : "no");
    for (uint32_t i = 0; i < w->comm_count; i++)
        write_comm(&w->comms[i], out);
    for (uint32_t i = 0, n; i < w->step_count; i += n) {
        const struct workload_step *s = &w->steps[i];

        if (i == 0 || s[-1].graph != s->graph) {
            if (s->graph)
                fprintf(out, "graph %u runs=%" PRIu64 "\n", s->graph, s->runs);
            else
                fputs("eager\n", out);
        }
        for (n = 1; i + n < w->step_count && same_line(s, &s[n]); n++)
            ;
        write_step(w, s, n, out);
    }
    return ferror(out) || fflush(out) ? -1 : 0;
}
