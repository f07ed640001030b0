/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI kernel activity, as Nsight Systems collects it: a library that the driver loads by
 * CUDA_INJECTION64_PATH. For comparing costs, and as an independent clock: it writes each of NCCL's and of
 * the shim's kernels with CUPTI's own start and end to the file CUPTI_ACTIVITY_OUT.PID.
 *
 *   kernels N                      all kernels seen, and records that CUPTI dropped
 *   nccl|stamp STREAM START END    times in ns
 *
 * CUPTI is opened at run time (CUPTI_LIB, default libcupti.so.13), its header gives the types.
 */
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (4u << 20)

/* Layouts of kernel records only grow at their end, for the fields read here since version 4. */
#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
#else
typedef CUpti_ActivityKernel4 kernel_record;
#endif

struct seen {
    uint64_t start_ns, end_ns;
    uint32_t stream;
    uint32_t stamp;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct seen *list;
static size_t count, room;
static unsigned long long kernels, dropped;

static struct {
    __typeof__(cuptiActivityRegisterCallbacks) *register_callbacks;
    __typeof__(cuptiActivityEnable) *enable;
    __typeof__(cuptiActivityGetNextRecord) *next;
    __typeof__(cuptiActivityGetNumDroppedRecords) *dropped;
    __typeof__(cuptiActivityFlushAll) *flush;
} cupti;

static void keep(const kernel_record *k)
{
    uint32_t stamp = k->name && strstr(k->name, "ncclshim_") != NULL;

    kernels++;
    if (!k->name || (!stamp && !strstr(k->name, "nccl")))
        return;
    if (count == room) {
        size_t more = room ? room * 2 : 1 << 16;
        struct seen *grown = realloc(list, more * sizeof(*list));
        if (!grown)
            return;
        list = grown;
        room = more;
    }
    list[count++] = (struct seen){k->start, k->end, k->streamId, stamp};
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most)
{
    *size = BUFFER_BYTES;
    *most = 0;
    *buffer = aligned_alloc(8, BUFFER_BYTES);
}

static void CUPTIAPI take_buffer(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    size_t lost = 0;

    (void)size;
    pthread_mutex_lock(&lock);
    while (valid && cupti.next(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL)
            keep((const kernel_record *)record);
    if (cupti.dropped(ctx, stream, &lost) == CUPTI_SUCCESS)
        dropped += lost;
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void write_all(void)
{
    const char *path = getenv("CUPTI_ACTIVITY_OUT");
    char full[4096];
    FILE *f;

    snprintf(full, sizeof(full), "%s.%d", path ? path : "", (int)getpid());
    f = path ? fopen(full, "w") : NULL;
    cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (!f)
        return;
    pthread_mutex_lock(&lock);
    fprintf(f, "kernels %llu dropped %llu\n", kernels, dropped);
    for (size_t i = 0; i < count; i++)
        fprintf(f, "%s %u %llu %llu\n", list[i].stamp ? "stamp" : "nccl", list[i].stream,
                (unsigned long long)list[i].start_ns, (unsigned long long)list[i].end_ns);
    pthread_mutex_unlock(&lock);
    fclose(f);
}

/* Called by the driver in cuInit. Non-zero = all is well. */
int InitializeInjection(void);
__attribute__((visibility("default"))) int InitializeInjection(void)
{
    const char *path = getenv("CUPTI_LIB");
    void *lib = dlopen(path ? path : "libcupti.so.13", RTLD_NOW | RTLD_LOCAL);

    if (!lib) {
        fprintf(stderr, "cupti_activity: %s\n", dlerror());
        return 0;
    }
    cupti.register_callbacks = (__typeof__(cupti.register_callbacks))dlsym(lib, "cuptiActivityRegisterCallbacks");
    cupti.enable = (__typeof__(cupti.enable))dlsym(lib, "cuptiActivityEnable");
    cupti.next = (__typeof__(cupti.next))dlsym(lib, "cuptiActivityGetNextRecord");
    cupti.dropped = (__typeof__(cupti.dropped))dlsym(lib, "cuptiActivityGetNumDroppedRecords");
    cupti.flush = (__typeof__(cupti.flush))dlsym(lib, "cuptiActivityFlushAll");
    if (!cupti.register_callbacks || !cupti.enable || !cupti.next || !cupti.dropped || !cupti.flush)
        return 0;
    if (cupti.register_callbacks(give_buffer, take_buffer) != CUPTI_SUCCESS ||
        cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) {
        fprintf(stderr, "cupti_activity: CUPTI does not start\n");
        return 0;
    }
    atexit(write_all);
    return 1;
}
