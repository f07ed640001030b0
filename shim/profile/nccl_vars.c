/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/nccl_vars.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/profile/nccl_vars_core.h"
#include "shim/profile/nccl_vars_net.h"

#define NOW NCCL_VERSION_NOW
#define NONE NCCL_VAR_NO_AUTO

static const struct nccl_var vars[] = {
#define V(name, type, when, first, last, least, most, automatic, standard, words, note) \
    {"NCCL_" #name, VAR_##type, READ_##when, first, last, least,                        \
     most,          automatic,  standard,    words, note},
    NCCLSHIM_NCCL_VARS_CORE(V) NCCLSHIM_NCCL_VARS_NET(V)
#undef V
};
#define VAR_COUNT (sizeof(vars) / sizeof(vars[0]))

static const char *const form_text[] = {
#define X(sym, form) [VAR_##sym] = form,
    NCCLSHIM_VAR_TYPES(X)
#undef X
};

static const char *const when_text[] = {
#define X(sym, text, change) [READ_##sym] = text,
    NCCLSHIM_VAR_CLASSES(X)
#undef X
};

const struct nccl_var *nccl_var_find(const char *name)
{
    for (size_t i = 0; i < VAR_COUNT; i++)
        if (!strcmp(vars[i].name, name))
            return &vars[i];
    return NULL;
}

const struct nccl_var *nccl_var_at(size_t n)
{
    return n < VAR_COUNT ? &vars[n] : NULL;
}

const char *nccl_var_nearest(const char *name)
{
    const char *names[VAR_COUNT + 1];

    for (size_t i = 0; i < VAR_COUNT; i++)
        names[i] = vars[i].name;
    names[VAR_COUNT] = NULL;
    return nearest_name(name, names);
}

bool nccl_var_in(const struct nccl_var *v, int version)
{
    return version >= v->first && (v->last == NCCL_VERSION_NOW || version <= v->last);
}

bool nccl_var_per_comm(const struct nccl_var *v)
{
    return v->when == READ_COMM;
}

const char *nccl_var_when_text(const struct nccl_var *v)
{
    return when_text[v->when];
}

const char *nccl_var_range_text(const struct nccl_var *v, char *buf, size_t size)
{
    int n;

    if (v->type == VAR_WORD) {
        snprintf(buf, size, "%s", v->words);
        for (char *c = buf; *c; c++)
            if (*c == '|')
                *c = ' ';
        return buf;
    }
    if (v->type != VAR_BOOL && v->type != VAR_INT && v->type != VAR_BYTES) {
        snprintf(buf, size, "%s", form_text[v->type]);
        return buf;
    }
    if (v->most == INT64_MAX)
        n = snprintf(buf, size, "%" PRId64 " and more", v->least);
    else if (v->most == v->least + 1)
        n = snprintf(buf, size, "%" PRId64 " or %" PRId64, v->least, v->most);
    else
        n = snprintf(buf, size, "%" PRId64 " to %" PRId64, v->least, v->most);
    if (v->automatic != NCCL_VAR_NO_AUTO && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, ", or %" PRId64 " for NCCL's choice", v->automatic);
    return buf;
}
