/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's kernel driver as the kernel shows it, also where NVML is not at hand. */
#include <stdlib.h>
#include <string.h>

#include "shim/prove/doctor/doctor_machine.h"
#include "shim/show/json.h"

void doctor_driver_judge(struct doctor_list *l, const char *root, bool nvml)
{
    char path[DOCTOR_PATH], version[64], hmm[8], *about;
    struct doctor_finding *f;
    bool open_modules;

    if (!doctor_line_of(doctor_path(path, root, "/sys/module/nvidia/version"), version,
                        sizeof(version)))
        return;
    about = doctor_slurp(doctor_path(path, root, "/proc/driver/nvidia/version"), 4096, NULL);
    open_modules = about && strstr(about, "Open Kernel Module");
    free(about);
    doctor_line_of(doctor_path(path, root, "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm"),
                   hmm, sizeof(hmm));
    if (nvml) {
        f = doctor_add(l, DOCTOR_OK, "driver", "kernel driver %s%s%s", version,
                       open_modules ? ", open modules" : "",
                       hmm[0] == 'Y' ? ", uvm_disable_hmm is set" : "");
    } else {
        f = doctor_add(l, DOCTOR_WARN, "driver",
                       "kernel driver %s is loaded, and its NVML can't be used from here", version);
        doctor_advise(
            f, "in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility; NCCL wants NVML, too");
    }
    doctor_fact(f, "version", json_text(version));
    doctor_fact(f, "open", json_boolean(open_modules));
    doctor_fact(f, "hmm_disabled", json_boolean(hmm[0] == 'Y'));
}
