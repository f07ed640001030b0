/* SPDX-License-Identifier: Apache-2.0 */
/* ncclParam* (2.30.4): a view of the few variables that NCCL's new registry holds, and of no
 * others. */
#include "test/fake/nccl_fake.h"

#if FAKE_VER >= 23004
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type { TEXT, FLAG };
struct ncclParamHandle {
    const char *key;
    enum type type;
    const char *otherwise;
    bool published;
    int since;
};
static struct ncclParamHandle registry[] = {
    {"NCCL_DEBUG", TEXT, "NONE", true, 23007},
    {"NCCL_DEBUG_FILE", TEXT, "", true, 23007},
    {"NCCL_DEBUG_SUBSYS", TEXT, "INIT,BOOTSTRAP,ENV", true, 23007},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT", TEXT, "[%F %T] ", true, 23007},
    {"NCCL_DEBUG_TIMESTAMP_LEVELS", TEXT, "WARN", true, 23007},
    {"NCCL_NO_CACHE", TEXT, "", true, 23003},
    {"NCCL_PARAM_DUMP_ALL", FLAG, "0", true, 23003},
    {"NCCL_SET_THREAD_NAME", FLAG, "0", true, 23007},
    {"NCCL_WARN_ENABLE_DEBUG_INFO", FLAG, "0", true, 23007},
};
#define ROWS (sizeof(registry) / sizeof(*registry))

static struct ncclParamHandle *find(const char *key)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!strcmp(registry[i].key, key) && registry[i].since <= FAKE_VER)
            return &registry[i];
    INFO(NCCL_ENV, "PARAM: key \"%s\" not found in registry", key);
    return NULL;
}

static const char *value_of(const struct ncclParamHandle *h)
{
    const char *v = fake_getenv(h->key);
    return v && *v ? v : h->otherwise;
}

FAKE_API(ncclResult_t, ncclParamBind, ncclParamHandle_t *out, const char *key)
{
    COUNT(ncclParamBind);
    if (!out || !key)
        return ncclInvalidArgument;
    struct ncclParamHandle *h = find(key);
    if (!h)
        return ncclInvalidArgument;
    *out = h;
    return ncclSuccess;
}

/* None of the registered keys is a number. */
#define NO_NUMBER(suffix, type)                                                  \
    FAKE_API(ncclResult_t, ncclParamGet##suffix, ncclParamHandle_t h, type *out) \
    {                                                                            \
        COUNT(ncclParamGet##suffix);                                             \
        if (h && out)                                                            \
            INFO(NCCL_ENV, "PARAM: type mismatch for key \"%s\"", h->key);       \
        return ncclInvalidArgument;                                              \
    }
NO_NUMBER(I8, int8_t)
NO_NUMBER(I16, int16_t)
NO_NUMBER(I32, int32_t)
NO_NUMBER(I64, int64_t)
NO_NUMBER(U8, uint8_t)
NO_NUMBER(U16, uint16_t)
NO_NUMBER(U32, uint32_t)
NO_NUMBER(U64, uint64_t)

FAKE_API(ncclResult_t, ncclParamGetStr, ncclParamHandle_t h, const char **out)
{
    COUNT(ncclParamGetStr);
    if (!h || !out || h->type != TEXT)
        return ncclInvalidArgument;
    *out = value_of(h);
    return ncclSuccess;
}

FAKE_API(ncclResult_t, ncclParamGet, ncclParamHandle_t h, void *out, int max, int *len)
{
    COUNT(ncclParamGet);
    if (!h || !out || max < 1)
        return ncclInvalidArgument;
    if (h->type == FLAG) {
        *(bool *)out = strtol(value_of(h), NULL, 0) != 0;
        if (len)
            *len = 1;
        return ncclSuccess;
    }
    int n = snprintf(out, (size_t)max, "%s", value_of(h));
    if (len)
        *len = n + 1;
    return n < max ? ncclSuccess : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclParamGetParameter, const char *key, const char **value, int *len)
{
    COUNT(ncclParamGetParameter);
    if (!key || !value || !len)
        return ncclInvalidArgument;
    struct ncclParamHandle *h = find(key);
    *value = h ? value_of(h) : NULL;
    *len = h ? (int)strlen(*value) : 0;
    return h ? ncclSuccess : ncclInvalidArgument;
}

FAKE_API(ncclResult_t, ncclParamGetAllParameterKeys, const char ***table, int *len)
{
    COUNT(ncclParamGetAllParameterKeys);
    static __thread const char *keys[ROWS];
    if (!table || !len)
        return ncclInvalidArgument;
    *len = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (registry[i].since <= FAKE_VER)
            keys[(*len)++] = registry[i].key;
    *table = keys;
    return ncclSuccess;
}

FAKE_API(void, ncclParamDumpAll, void)
{
    COUNT(ncclParamDumpAll);
    printf("=== ncclParam Registry Dump ===\n");
    for (size_t i = 0; i < ROWS; i++)
        if (registry[i].since <= FAKE_VER)
            printf("%s=%s\n", registry[i].key, value_of(&registry[i]));
}
#else
typedef int fake_param_api_is_newer_than_this_version;
#endif
