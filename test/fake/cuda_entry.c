/* SPDX-License-Identifier: Apache-2.0 */
/* How each driver call begins: counts, injected faults, cuInit, fork; and cuGetProcAddress. */
#include "test/fake/cuda_sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct row {
    const char *base;
    const char *symbol;
    int since;
    void *address;
    void *per_thread;
};

#define VARIANT_NONE(symbol) NULL
#define VARIANT_SZ(symbol) (void *)symbol##_ptsz
#define VARIANT_DS(symbol) (void *)symbol##_ptds

static const struct row rows[FN_COUNT] = {
#define ROW(base, symbol, since, variant) \
    {#base, #symbol, since, (void *)symbol, VARIANT_##variant(symbol)},
    CUDA_TABLE(ROW)
#undef ROW
};

struct fault {
    char function[64];
    uint64_t nth; /* 0: every call */
    CUresult error;
    atomic_uint_fast64_t seen;
};

static atomic_uint_fast64_t counts[FN_COUNT];
static atomic_uint_fast64_t early_releases;
static atomic_uint_fast64_t launches_in[MAX_DOMAINS];
#define MAX_KERNELS 16
static struct {
    char name[48];
    unsigned long count;
} launches_of[MAX_KERNELS]; /* in sim_lock */
static atomic_bool initialized;
static atomic_bool forked;
static struct fault *faults;
static size_t nfaults;
static pthread_once_t setup_once = PTHREAD_ONCE_INIT;

static void read_faults(const char *list)
{
    char *copy = strdup(list), *rest = copy, *item;
    while ((item = strsep(&rest, ",")) != NULL) {
        struct fault fault = {.nth = 1, .error = CUDA_ERROR_UNKNOWN};
        char *name = strsep(&item, ":");
        char *nth = strsep(&item, ":");
        if (name == NULL || *name == '\0') {
            continue;
        }
        snprintf(fault.function, sizeof fault.function, "%s", name);
        if (nth != NULL) {
            fault.nth = strcmp(nth, "*") == 0 ? 0 : strtoull(nth, NULL, 10);
        }
        if (item != NULL) {
            fault.error = (CUresult)atoi(item);
        }
        faults = sim_grow(faults, nfaults + 1, sizeof *faults);
        faults[nfaults++] = fault;
    }
    free(copy);
}

static void setup(void)
{
    if (sim_env()->fail != NULL) {
        read_faults(sim_env()->fail);
    }
}

static bool is_name_of(const struct row *row, const char *name)
{
    size_t length = strlen(row->symbol);
    return strcmp(name, row->base) == 0 ||
           (strncmp(name, row->symbol, length) == 0 &&
            (name[length] == '\0' || strcmp(name + length, "_ptsz") == 0 ||
             strcmp(name + length, "_ptds") == 0));
}

CUresult sim_enter_early(enum fn fn)
{
    pthread_once(&setup_once, setup);
    atomic_fetch_add_explicit(&counts[fn], 1, memory_order_relaxed);
    for (size_t i = 0; i < nfaults; i++) {
        if (is_name_of(&rows[fn], faults[i].function)) {
            uint64_t call = atomic_fetch_add(&faults[i].seen, 1) + 1;
            if (faults[i].nth == 0 || faults[i].nth == call) {
                return faults[i].error;
            }
        }
    }
    return CUDA_SUCCESS;
}

CUresult sim_ready(void)
{
    if (atomic_load_explicit(&forked, memory_order_relaxed) ||
        !atomic_load_explicit(&initialized, memory_order_acquire)) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    return sim_thread()->in_host_function ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult sim_enter(enum fn fn)
{
    TRY(sim_enter_early(fn));
    CUresult result = sim_ready();
    /* Questions are allowed in a host function. */
    bool question = fn == FN_cuStreamQuery || fn == FN_cuEventQuery;
    return question && result == CUDA_ERROR_NOT_PERMITTED ? CUDA_SUCCESS : result;
}

static void in_child(void)
{
    /* Locks may be held by threads that don't exist here: nothing works in the child, as with CUDA.
     */
    atomic_store(&forked, true);
}

static void init(void)
{
    pthread_atfork(NULL, NULL, in_child);
    atomic_store_explicit(&initialized, true, memory_order_release);
}

CUresult cuInit(unsigned int flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    TRY(sim_enter_early(FN_cuInit));
    if (atomic_load(&forked)) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_env()->gpus == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    pthread_once(&once, init);
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    TRY(sim_enter_early(FN_cuDriverGetVersion));
    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = sim_env()->driver;
    return CUDA_SUCCESS;
}

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    TRY(sim_enter_early(FN_cuGetExportTable));
    (void)id;
    if (table != NULL) {
        *table = NULL;
    }
    return CUDA_ERROR_NOT_FOUND;
}

static CUresult find_address(const char *name, void **address, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    const struct row *best = NULL;
    bool known = false;
    if (name == NULL || address == NULL ||
        (flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                               CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (version > sim_env()->driver) {
        version = sim_env()->driver;
    }
    for (size_t i = 0; i < FN_COUNT; i++) {
        if (strcmp(rows[i].base, name) == 0) {
            known = known || rows[i].since <= sim_env()->driver;
            if (rows[i].since <= version) {
                best = &rows[i];
            }
        }
    }
    if (status != NULL) {
        *status = best != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
                  : known      ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                               : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    *address = NULL;
    if (best == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    *address = per_thread && best->per_thread != NULL ? best->per_thread : best->address;
    return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **address, int version, cuuint64_t flags)
{
    TRY(sim_enter_early(FN_cuGetProcAddress));
    return find_address(symbol, address, version, flags, NULL);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    TRY(sim_enter_early(FN_cuGetProcAddress_v2));
    CUresult result = find_address(symbol, address, version, flags, status);
    /* The new form answers NULL and the reason in *status, and calls that a success. */
    return result == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : result;
}

uint64_t fakecuda_calls(const char *function)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < FN_COUNT; i++) {
        if (is_name_of(&rows[i], function)) {
            sum += atomic_load_explicit(&counts[i], memory_order_relaxed);
        }
    }
    return sum;
}

void sim_early_release(void)
{
    atomic_fetch_add_explicit(&early_releases, 1, memory_order_relaxed);
}

uint64_t fakecuda_early_releases(void)
{
    return atomic_load_explicit(&early_releases, memory_order_relaxed);
}

void sim_count_domain(unsigned domain)
{
    atomic_fetch_add_explicit(&launches_in[domain], 1, memory_order_relaxed);
}

void sim_count_kernel(const char *name)
{
    for (unsigned i = 0; i < MAX_KERNELS; i++) {
        if (launches_of[i].count == 0) {
            snprintf(launches_of[i].name, sizeof launches_of[i].name, "%s", name);
        }
        if (!strcmp(launches_of[i].name, name)) {
            launches_of[i].count++;
            return;
        }
    }
}

__attribute__((destructor)) static void write_counts(void)
{
    char text[(FN_COUNT + MAX_DOMAINS + MAX_KERNELS) * 80];
    size_t n = 0;
    if (atomic_load(&forked) || sim_env()->counts == NULL) {
        return;
    }
    for (size_t i = 0; i < FN_COUNT; i++) {
        uint64_t count = atomic_load_explicit(&counts[i], memory_order_relaxed);
        if (count != 0) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s %llu\n", rows[i].symbol,
                                  (unsigned long long)count);
        }
    }
    for (unsigned i = 0; i < MAX_DOMAINS; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "cuLaunchKernelEx-in-domain-%u %llu\n", i,
                              (unsigned long long)atomic_load(&launches_in[i]));
    }
    for (unsigned i = 0; i < MAX_KERNELS && launches_of[i].count != 0; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "kernel-%s %llu\n", launches_of[i].name,
                              (unsigned long long)launches_of[i].count);
    }
    /* One write, so that the lines of several processes don't mix. */
    int fd = open(sim_env()->counts, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0) {
        ssize_t written = write(fd, text, n);
        (void)written;
        close(fd);
    }
}
