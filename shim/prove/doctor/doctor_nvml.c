/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML's own declarations, as far as they are needed: the numbers and layouts are those of nvml.h
 * since driver 450, and are part of its ABI.
 */
#include "shim/prove/doctor/doctor_gpus.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS_MAX 64 /* of one host; NVML has no more today */

typedef void *device;

struct pci_info { /* nvmlPciInfo_t, v3 */
    char bus_legacy[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
};

struct process_info { /* nvmlProcessInfo_v2_t; _v3 functions take the same */
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

enum { P2P_READ, P2P_WRITE, P2P_NVLINK };

struct nvml {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int);
    int (*driver)(char *, unsigned);
    int (*count)(unsigned *);
    int (*by_index)(unsigned, device *);
    int (*name)(device, char *, unsigned);
    int (*pci)(device, struct pci_info *);
    int (*gen)(device, unsigned *);
    int (*gen_max)(device, unsigned *);
    int (*gen_gpu)(device, unsigned *);
    int (*width)(device, unsigned *);
    int (*width_max)(device, unsigned *);
    int (*pstate)(device, unsigned *);
    int (*mig)(device, unsigned *, unsigned *);
    int (*processes)(device, unsigned *, struct process_info *);
    int (*ancestor)(device, device, unsigned *);
    int (*p2p)(device, device, int, int *);
};

/* Old drivers lack some: those stay NULL, and what they tell stays unknown. */
static bool load(struct nvml *n, const char *library, struct doctor_gpus *g)
{
    const struct {
        void *slot;
        const char *name;
    } names[] = {
        {&n->init, "nvmlInit_v2"},
        {&n->shutdown, "nvmlShutdown"},
        {&n->error, "nvmlErrorString"},
        {&n->driver, "nvmlSystemGetDriverVersion"},
        {&n->count, "nvmlDeviceGetCount_v2"},
        {&n->by_index, "nvmlDeviceGetHandleByIndex_v2"},
        {&n->name, "nvmlDeviceGetName"},
        {&n->pci, "nvmlDeviceGetPciInfo_v3"},
        {&n->gen, "nvmlDeviceGetCurrPcieLinkGeneration"},
        {&n->gen_max, "nvmlDeviceGetMaxPcieLinkGeneration"},
        {&n->gen_gpu, "nvmlDeviceGetGpuMaxPcieLinkGeneration"},
        {&n->width, "nvmlDeviceGetCurrPcieLinkWidth"},
        {&n->width_max, "nvmlDeviceGetMaxPcieLinkWidth"},
        {&n->pstate, "nvmlDeviceGetPerformanceState"},
        {&n->mig, "nvmlDeviceGetMigMode"},
        {&n->processes, "nvmlDeviceGetComputeRunningProcesses_v3"},
        {&n->ancestor, "nvmlDeviceGetTopologyCommonAncestor"},
        {&n->p2p, "nvmlDeviceGetP2PStatus"},
    };

    n->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!n->handle) {
        snprintf(g->why, sizeof(g->why), "%s", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *fn = dlsym(n->handle, names[i].name);
        memcpy(names[i].slot, &fn, sizeof(fn));
    }
    if (!n->processes) {
        void *fn = dlsym(n->handle, "nvmlDeviceGetComputeRunningProcesses_v2");
        memcpy(&n->processes, &fn, sizeof(fn));
    }
    if (!n->init || !n->count || !n->by_index || !n->shutdown)
        snprintf(g->why, sizeof(g->why), "%s lacks functions that every NVML has", library);
    return !g->why[0];
}

static int number(int (*fn)(device, unsigned *), device d)
{
    unsigned n = 0;

    return fn && fn(d, &n) == 0 && n <= INT32_MAX ? (int)n : -1;
}

static void read_processes(const struct nvml *n, device d, struct doctor_gpu *gpu)
{
    struct process_info list[128];
    unsigned count = 128;

    memset(list, 0, sizeof(list));
    if (!n->processes || n->processes(d, &count, list) != 0 || count > 128)
        return;
    gpu->processes = (int)count;
    for (unsigned i = 0; i < count && i < DOCTOR_GPU_PIDS; i++)
        gpu->pids[i] = list[i].pid;
}

static void read_gpu(const struct nvml *n, device d, struct doctor_gpu *gpu)
{
    struct pci_info pci = {0};
    unsigned now = 0, pending = 0;

    if (!n->name || n->name(d, gpu->name, sizeof(gpu->name)) != 0)
        snprintf(gpu->name, sizeof(gpu->name), "GPU without a name");
    gpu->name[sizeof(gpu->name) - 1] = '\0';
    if (n->pci && n->pci(d, &pci) == 0)
        snprintf(gpu->bus, sizeof(gpu->bus), "%.31s", pci.bus_id);
    gpu->gen = number(n->gen, d);
    gpu->gen_max = number(n->gen_max, d);
    gpu->gen_gpu = number(n->gen_gpu, d);
    gpu->width = number(n->width, d);
    gpu->width_max = number(n->width_max, d);
    gpu->pstate = number(n->pstate, d);
    gpu->mig = n->mig && n->mig(d, &now, &pending) == 0 ? (int)now : -1;
    gpu->processes = -1;
    read_processes(n, d, gpu);
}

static int status(const struct nvml *n, device a, device b, int what)
{
    int s = -1;

    return n->p2p && n->p2p(a, b, what, &s) == 0 ? s : -1;
}

static void read_all(const struct nvml *n, struct doctor_gpus *g)
{
    device d[GPUS_MAX] = {0};
    unsigned level;

    for (unsigned i = 0; i < g->count; i++)
        if (n->by_index(i, &d[i]) == 0)
            read_gpu(n, d[i], &g->gpu[i]);
        else
            snprintf(g->gpu[i].name, sizeof(g->gpu[i].name), "GPU %u, which NVML does not open", i);
    for (unsigned i = 0; i < g->count; i++)
        for (unsigned j = i + 1; j < g->count; j++) {
            struct doctor_pair *p = &g->pair[i * g->count + j];
            *p = (struct doctor_pair){-1, -1, -1, -1};
            if (!d[i] || !d[j])
                continue;
            p->read = status(n, d[i], d[j], P2P_READ);
            p->write = status(n, d[i], d[j], P2P_WRITE);
            p->nvlink = status(n, d[i], d[j], P2P_NVLINK);
            if (n->ancestor && n->ancestor(d[i], d[j], &level) == 0)
                p->ancestor = (int)level;
        }
}

void doctor_gpus_read(struct doctor_gpus *g, const char *library)
{
    struct nvml n = {0};
    unsigned count = 0;
    int rc;

    memset(g, 0, sizeof(*g));
    if (!load(&n, library, g))
        return;
    rc = n.init();
    if (rc != 0) {
        snprintf(g->why, sizeof(g->why), "NVML does not start: %s",
                 n.error ? n.error(rc) : "no reason told");
        return;
    }
    if (n.driver && n.driver(g->driver, sizeof(g->driver)) != 0)
        g->driver[0] = '\0';
    if (n.count(&count) == 0 && count > 0) {
        g->count = count < GPUS_MAX ? count : GPUS_MAX;
        g->gpu = calloc(g->count, sizeof(*g->gpu));
        g->pair = calloc((size_t)g->count * g->count, sizeof(*g->pair));
    }
    if (g->gpu && g->pair)
        read_all(&n, g);
    else
        g->count = 0;
    g->loaded = true;
    n.shutdown(); /* the library itself stays: it has threads and handlers that dlclose would tear
                   */
}

void doctor_gpus_free(struct doctor_gpus *g)
{
    free(g->gpu);
    free(g->pair);
    memset(g, 0, sizeof(*g));
}
