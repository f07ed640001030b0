/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL_ALGO and NCCL_PROTO: entries by ';', each "[function:][^]element,element"; only the first
 * may lack the function; blanks are not trimmed; what is not known fails the communicator's init.
 * Before 2.24 the value was one list for all functions and a colon was part of a (then unknown)
 * word.
 */
#include "test/fake/nccl_fake.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const functions[FAKE_NUM_FUNCS] = {"Broadcast", "Reduce", "AllGather",
                                                      "ReduceScatter", "AllReduce"};

/* One element list into one row. */
static ncclResult_t row(const char *list, const char *whole, const char *const *elems, int n,
                        int *out)
{
    int set = 1;
    if (*list == '^') {
        set = 0;
        list++;
    }
    for (int e = 0; e < n; e++)
        out[e] = !set;
    char *copy = strdup(list), *save = NULL;
    ncclResult_t res = ncclSuccess;
    for (char *word = strtok_r(copy, ",", &save); word && res == ncclSuccess;
         word = strtok_r(NULL, ",", &save)) {
        int e = 0;
        while (e < n && strcasecmp(word, elems[e]))
            e++;
        if (e < n) {
            out[e] = set;
        } else {
            WARN("Unrecognized element token \"%s\" when parsing \"%s\"", word, whole);
            res = ncclInvalidUsage;
        }
    }
    free(copy);
    return res;
}

static ncclResult_t entry(char *text, bool first, const char *whole, const char *const *elems,
                          int n, int list[FAKE_NUM_FUNCS][8])
{
    char *save = NULL, *prefix = NULL, *elements = text;
    if (FAKE_VER >= 22403) {
        prefix = strtok_r(text, ":", &save);
        elements = strtok_r(NULL, ":", &save);
        if (!elements) {
            if (!first) {
                WARN("All entries except the first must have a prefix: \"%s\"", whole);
                return ncclInvalidUsage;
            }
            elements = prefix;
            prefix = NULL;
        }
        if (!elements)
            return ncclSuccess;
    }
    bool found = false;
    for (int f = 0; f < FAKE_NUM_FUNCS; f++) {
        if (prefix && strcasecmp(prefix, functions[f]))
            continue;
        found = true;
        NCCLCHECK(row(elements, whole, elems, n, list[f]));
    }
    if (!found) {
        WARN("Unrecognized prefix token \"%s\" when parsing \"%s\"", prefix, whole);
        return ncclInvalidUsage;
    }
    return ncclSuccess;
}

ncclResult_t fake_parse_list(const char *text, const char *const *elems, int nelems,
                             int list[FAKE_NUM_FUNCS][8])
{
    char *copy = strdup(text), *save = NULL;
    ncclResult_t res = ncclSuccess;
    bool first = true;
    const char *separator = FAKE_VER >= 22403 ? ";" : "";
    for (char *t = strtok_r(copy, separator, &save); t && res == ncclSuccess;
         t = strtok_r(NULL, separator, &save)) {
        res = entry(t, first, text, elems, nelems, list);
        first = false;
    }
    free(copy);
    return res;
}
