/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/choice.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const int choice_ops[CHOICE_OPS] = {OP_BROADCAST, OP_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER,
                                    OP_ALL_REDUCE};

static const char *const nccl_ops[CHOICE_OPS + 1] = {"Broadcast",     "Reduce",    "AllGather",
                                                     "ReduceScatter", "AllReduce", NULL};
static const char *const nccl_algos[] = {
#define X(sym, num, text, nccl) nccl,
    NCCLSHIM_ALGOS(X)
#undef X
        NULL};
static const char *const nccl_protos[] = {
#define X(sym, num, text, nccl) nccl,
    NCCLSHIM_PROTOS(X)
#undef X
        NULL};

#define ALL_OPS 255

void choice_default(bool proto, struct choice *out)
{
    memset(out, 0, sizeof(*out));
    memset(out->on, proto ? CHOICE_ALL_PROTOS : CHOICE_ALL_ALGOS, sizeof(out->on));
}

static int index_of(const char *const *set, const char *word, size_t n)
{
    for (int i = 0; set[i]; i++)
        if (strlen(set[i]) == n && !strncasecmp(set[i], word, n))
            return i;
    return -1;
}

struct reading {
    const char *value;
    bool proto;
    struct choice *out;
    char *why;
    size_t why_size;
};

static int refuse(const struct reading *r, const char *word, size_t n, const char *what,
                  const char *const *set)
{
    char text[64];
    const char *near;

    snprintf(text, sizeof(text), "%.*s", n < 40 ? (int)n : 40, word);
    near = set && *text ? nearest_name(text, set) : NULL;
    if (!n)
        snprintf(r->why, r->why_size, "%s at letter %d", what, (int)(word - r->value) + 1);
    else if (near)
        snprintf(r->why, r->why_size, "%s '%s' at letter %d; did you mean '%s'?", what, text,
                 (int)(word - r->value) + 1, near);
    else
        snprintf(r->why, r->why_size, "%s '%s' at letter %d", what, text,
                 (int)(word - r->value) + 1);
    return -1;
}

/* `^LL,Simple` for one operation or for all of them. */
static int read_elements(const struct reading *r, const char *c, const char *end, int op)
{
    const char *const *set = r->proto ? nccl_protos : nccl_algos;
    uint8_t all = r->proto ? CHOICE_ALL_PROTOS : CHOICE_ALL_ALGOS;
    uint8_t listed = 0;
    bool negated = c < end && *c == '^';

    if (negated)
        c++;
    for (;;) {
        const char *comma = memchr(c, ',', (size_t)(end - c));
        const char *stop = comma ? comma : end;
        int element = index_of(set, c, (size_t)(stop - c));
        if (stop == c)
            return refuse(r, c, 0, "an empty element", NULL);
        if (element < 0)
            return refuse(r, c, (size_t)(stop - c),
                          r->proto ? "no protocol is called" : "no algorithm is called", set);
        listed |= (uint8_t)(1u << element);
        if (!comma)
            break;
        c = comma + 1;
    }
    if (negated)
        r->out->negated = true;
    else
        r->out->named |= listed;
    for (int i = 0; i < CHOICE_OPS; i++)
        if (op == ALL_OPS || op == i) {
            r->out->on[i] = negated ? (uint8_t)(all & ~listed) : listed;
            r->out->said[i] = true;
        }
    return 0;
}

static int read_entry(const struct reading *r, const char *c, const char *end, uint8_t *seen)
{
    const char *colon = memchr(c, ':', (size_t)(end - c));
    int op = ALL_OPS;

    if (c == end)
        return refuse(r, c, 0, "an empty entry", NULL);
    if (!colon && c != r->value)
        return refuse(
            r, c, (size_t)(end - c),
            "every entry but the first needs an operation in front (allreduce:...), not so", NULL);
    if (colon) {
        op = index_of(nccl_ops, c, (size_t)(colon - c));
        if (op < 0)
            return refuse(r, c, (size_t)(colon - c), "no operation is called", nccl_ops);
        if (*seen & 1u << op)
            return refuse(r, c, (size_t)(colon - c), "a second entry for", NULL);
        *seen |= (uint8_t)(1u << op);
        r->out->per_operation = true;
        c = colon + 1;
        if (memchr(c, ':', (size_t)(end - c)))
            return refuse(r, c, (size_t)(end - c), "a second colon in", NULL);
    }
    return read_elements(r, c, end, op);
}

int choice_parse(const char *value, bool proto, struct choice *out, char *why, size_t why_size)
{
    struct reading r = {value, proto, out, why, why_size};
    const char *c = value;
    uint8_t seen = 0;

    choice_default(proto, out);
    for (;;) {
        const char *end = strchrnul(c, ';');
        if (read_entry(&r, c, end, &seen))
            return -1;
        if (!*end)
            return 0;
        c = end + 1;
    }
}

void choice_trim(char *value)
{
    char *to = value;

    for (const char *c = value; *c; c++) {
        const char *next = c;
        if (*c != ' ' && *c != '\t') {
            *to++ = *c;
            continue;
        }
        while (*next == ' ' || *next == '\t')
            next++;
        /* A blank stays where it stands between letters: an error that must show. */
        if (to == value || !*next || strchr(",;:^", to[-1]) || strchr(",;:^", *next))
            continue;
        *to++ = ' ';
        c = next - 1;
    }
    *to = '\0';
}

int choice_index(int op)
{
    for (int i = 0; i < CHOICE_OPS; i++)
        if (choice_ops[i] == op)
            return i;
    return -1;
}

uint8_t choice_protos_of(int op, int algo)
{
    const uint8_t simple = 1u << PROTO_SIMPLE;

    if (algo == ALGO_RING)
        return choice_index(op) < 0 ? 0 : CHOICE_ALL_PROTOS;
    switch (op) {
    case OP_ALL_REDUCE:
        return algo == ALGO_TREE ? CHOICE_ALL_PROTOS : algo == ALGO_PAT ? 0 : simple;
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER:
        return algo == ALGO_PAT || algo == ALGO_NVLS || algo == ALGO_COLLNET_DIRECT ? simple : 0;
    default:
        return 0;
    }
}
