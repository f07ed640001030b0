/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/tune/tune_machine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NVML's own names and numbers (nvml.h, driver 450 to 580). */
struct process_info {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};
#define CLOCK_SM 1
#define CLOCK_MEMORY 2
#define SENSOR_GPU 0
#define PROCESSES 64

typedef int (*init_fn)(void);
typedef int (*count_fn)(unsigned *);
typedef int (*handle_fn)(unsigned, void **);
typedef int (*number_fn)(void *, int, unsigned *);
typedef int (*processes_fn)(void *, unsigned *, struct process_info *);

static void *find(const struct tune_machine *m, const char *name)
{
    return m->nvml ? dlsym(m->nvml, name) : NULL;
}

void machine_open(struct tune_machine *m)
{
    init_fn init;

    memset(m, 0, sizeof(*m));
    m->nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    init = (init_fn)find(m, "nvmlInit_v2");
    if (m->nvml && (!init || init() != 0)) {
        dlclose(m->nvml);
        m->nvml = NULL;
    }
}

void machine_close(struct tune_machine *m)
{
    init_fn shutdown = (init_fn)find(m, "nvmlShutdown");

    if (shutdown)
        shutdown();
    if (m->nvml)
        dlclose(m->nvml);
    m->nvml = NULL;
}

/* Started by us: one of its ancestors is this process. */
static bool is_ours(int pid)
{
    char path[64], text[512];
    const char *end;
    FILE *in;

    for (int depth = 0; pid > 1 && depth < 64; depth++) {
        if (pid == getpid())
            return true;
        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        in = fopen(path, "re");
        if (!in)
            return false;
        text[fread(text, 1, sizeof(text) - 1, in)] = '\0';
        fclose(in);
        end = strrchr(text, ')');
        pid = end && strlen(end) > 4 ? atoi(end + 4) : 0;
    }
    return false;
}

static void add_others(const struct tune_machine *m, void *gpu, struct machine_look *out)
{
    processes_fn list = (processes_fn)find(m, "nvmlDeviceGetComputeRunningProcesses_v3");
    struct process_info found[PROCESSES];
    unsigned n = PROCESSES;

    if (!list || list(gpu, &n, found) != 0)
        return;
    for (unsigned i = 0; i < n && out->other_count < MACHINE_OTHERS; i++) {
        bool known = is_ours((int)found[i].pid);
        for (size_t k = 0; k < out->other_count; k++)
            known |= out->others[k] == (int)found[i].pid;
        if (!known)
            out->others[out->other_count++] = (int)found[i].pid;
    }
}

static void look_at(const struct tune_machine *m, unsigned index, struct machine_look *out)
{
    handle_fn handle = (handle_fn)find(m, "nvmlDeviceGetHandleByIndex_v2");
    number_fn clock = (number_fn)find(m, "nvmlDeviceGetClockInfo");
    number_fn sensor = (number_fn)find(m, "nvmlDeviceGetTemperature");
    struct machine_gpu *g = &out->gpus[out->gpu_count];
    void *gpu;

    if (!handle || handle(index, &gpu) != 0)
        return;
    if (clock && clock(gpu, CLOCK_SM, &g->sm_mhz) != 0)
        g->sm_mhz = 0;
    if (clock && clock(gpu, CLOCK_MEMORY, &g->memory_mhz) != 0)
        g->memory_mhz = 0;
    if (sensor && sensor(gpu, SENSOR_GPU, &g->celsius) != 0)
        g->celsius = 0;
    out->gpu_count++;
    add_others(m, gpu, out);
}

void machine_look(struct tune_machine *m, struct machine_look *out)
{
    count_fn count = (count_fn)find(m, "nvmlDeviceGetCount_v2");
    unsigned n = 0;

    memset(out, 0, sizeof(*out));
    if (getloadavg(&out->load, 1) < 1)
        out->load = -1;
    out->nvml = count && count(&n) == 0;
    for (unsigned i = 0; out->nvml && i < n && i < MACHINE_GPUS; i++)
        look_at(m, i, out);
}

const char *machine_others(const struct machine_look *l, char *buf, size_t size)
{
    size_t n = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < l->other_count && n + 80 < size; i++) {
        char path[64], name[64] = "?";
        FILE *in;
        snprintf(path, sizeof(path), "/proc/%d/comm", l->others[i]);
        if ((in = fopen(path, "re"))) {
            if (fgets(name, sizeof(name), in))
                name[strcspn(name, "\n")] = '\0';
            fclose(in);
        }
        n +=
            (size_t)snprintf(buf + n, size - n, "%spid %d (%s)", n ? ", " : "", l->others[i], name);
    }
    return buf;
}
