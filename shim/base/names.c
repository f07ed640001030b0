/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/base/names.h"

#include <ctype.h>
#include <string.h>

const char *const op_names[OP_COUNT + 1] = {
#define X(sym, num, text, nccl) [num] = text,
    NCCLSHIM_OPS(X)
#undef X
};
const char *const dtype_names[DTYPE_COUNT + 1] = {
#define X(sym, num, text, bytes) [num] = text,
    NCCLSHIM_DTYPES(X)
#undef X
};
static const unsigned char dtype_size[] = {
#define X(sym, num, text, bytes) [num] = bytes,
    NCCLSHIM_DTYPES(X)
#undef X
};
static const char *const redop_text[] = {
#define X(sym, num, text) [num] = text,
    NCCLSHIM_REDOPS(X)
#undef X
};
static const char *const algo_text[] = {
#define X(sym, num, text, nccl) [num] = text,
    NCCLSHIM_ALGOS(X)
#undef X
};
static const char *const proto_text[] = {
#define X(sym, num, text, nccl) [num] = text,
    NCCLSHIM_PROTOS(X)
#undef X
};

static const char *const origin_text[] = {
#define X(num, word, label) [num] = word,
    NCCLSHIM_ORIGINS(X)
#undef X
};
static const char *const origin_label_text[] = {
#define X(num, word, label) [num] = label,
    NCCLSHIM_ORIGINS(X)
#undef X
};

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char *text_of(const char *const *set, size_t n, unsigned i)
{
    return i < n && set[i] ? set[i] : "?";
}

static int same_name(const char *a, const char *b)
{
    for (;;) {
        while (*a == '_' || *a == ' ')
            a++;
        while (*b == '_' || *b == ' ')
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return 0;
        if (!*a)
            return 1;
        a++;
        b++;
    }
}

static int number_of(const char *const *set, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (set[i] && same_name(set[i], text))
            return (int)i;
    return -1;
}

const char *op_name(unsigned op)
{
    return text_of(op_names, OP_COUNT, op);
}

const char *dtype_name(unsigned dtype)
{
    return text_of(dtype_names, DTYPE_COUNT, dtype);
}

const char *redop_name(unsigned redop)
{
    return text_of(redop_text, LEN(redop_text), redop);
}

const char *algo_name(unsigned algo)
{
    return text_of(algo_text, LEN(algo_text), algo);
}

const char *proto_name(unsigned proto)
{
    return text_of(proto_text, LEN(proto_text), proto);
}

const char *origin_name(unsigned origin)
{
    return text_of(origin_text, LEN(origin_text), origin);
}

const char *origin_label(unsigned origin)
{
    return text_of(origin_label_text, LEN(origin_label_text), origin);
}

size_t dtype_bytes(unsigned dtype)
{
    return dtype < LEN(dtype_size) ? dtype_size[dtype] : 0;
}

int op_parse(const char *text)
{
    return number_of(op_names, OP_COUNT, text);
}

int dtype_parse(const char *text)
{
    return number_of(dtype_names, DTYPE_COUNT, text);
}

int redop_parse(const char *text)
{
    return number_of(redop_text, LEN(redop_text), text);
}

int algo_parse(const char *text)
{
    return number_of(algo_text, LEN(algo_text), text);
}

int proto_parse(const char *text)
{
    return number_of(proto_text, LEN(proto_text), text);
}

#define NEAREST_MAX 64 /* longer words are compared by their first 64 letters */

static size_t edit_distance(const char *a, const char *b)
{
    size_t la = strnlen(a, NEAREST_MAX), lb = strnlen(b, NEAREST_MAX);
    size_t row[NEAREST_MAX + 1];

    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            int equal = toupper((unsigned char)a[i - 1]) == toupper((unsigned char)b[j - 1]);
            size_t best = diagonal + (equal ? 0 : 1);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[lb];
}

const char *nearest_name(const char *text, const char *const *names)
{
    const char *best = NULL;
    size_t best_distance = strnlen(text, NEAREST_MAX) / 3 + 1;

    for (; *names; names++) {
        size_t d = edit_distance(text, *names);
        if (d < best_distance) {
            best_distance = d;
            best = *names;
        }
    }
    return best;
}
