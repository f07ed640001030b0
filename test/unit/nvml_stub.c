/* SPDX-License-Identifier: Apache-2.0 */
/* What tune asks of libnvidia-ml.so.1: two GPUs, one of them without a sensor; processes 1 and STUB_PID. */
#include <stdlib.h>

#define GONE 3 /* any error */

struct process_info {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *mhz);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, struct process_info *found);

static char gpus[2];

int nvmlInit_v2(void)
{
    return getenv("STUB_BROKEN") ? GONE : 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = 3; /* the third can't be opened */
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = index < 2 ? &gpus[index] : NULL;
    return index < 2 ? 0 : GONE;
}

int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *mhz)
{
    *mhz = kind == 1 ? 1980 : 2619;
    return device == &gpus[0] || kind == 1 ? 0 : GONE;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    *celsius = 41;
    return sensor == 0 && device == &gpus[0] ? 0 : GONE;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, struct process_info *found)
{
    (void)device;
    found[0] = (struct process_info){.pid = 1};
    found[1] = (struct process_info){.pid = (unsigned)atoi(getenv("STUB_PID"))};
    *n = 2;
    return 0;
}
