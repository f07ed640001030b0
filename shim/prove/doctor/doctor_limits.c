/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "shim/base/paths.h"
#include "shim/prove/doctor/doctor_machine.h"
#include "shim/show/json.h"
#include "shim/show/term.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* ---- /dev/shm ------------------------------------------------------------------------------- */

/* A folder of logs has private ones of `ncclshim run` in it, and these no more. */
static uint64_t bytes_of_logs(const char *dir, int depth)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    uint64_t sum = 0;
    struct stat st;

    while (d && (e = readdir(d))) {
        if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISDIR(st.st_mode) && depth < 2 && (depth || !strncmp(e->d_name, "ncclshim-", 9))) {
            char path[DOCTOR_PATH];
            if (snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < (int)sizeof(path))
                sum += bytes_of_logs(path, depth + 1);
        } else if (S_ISREG(st.st_mode) && depth && is_log_file_name(e->d_name)) {
            sum += (uint64_t)st.st_blocks * 512;
        }
    }
    if (d)
        closedir(d);
    return sum;
}

void doctor_shm_read(struct doctor_shm *s, const char *root, int pid)
{
    char path[DOCTOR_PATH];
    struct statvfs v;

    memset(s, 0, sizeof(*s));
    if (pid)
        doctor_path(path, root, "/proc/%d/root/dev/shm", pid);
    else
        doctor_path(path, root, "/dev/shm");
    if (statvfs(path, &v) != 0)
        return;
    s->there = true;
    s->bytes = (uint64_t)v.f_blocks * v.f_frsize;
    s->free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
    s->log_bytes = bytes_of_logs(path, 0);
}

void doctor_shm_judge(struct doctor_list *l, const struct doctor_shm *s)
{
    char size[UNIT_SIZE], left[UNIT_SIZE], logs[UNIT_SIZE];
    struct doctor_finding *f;

    if (!s->there) {
        f = doctor_add(l, DOCTOR_BAD, "shm",
                       "/dev/shm is not there: neither NCCL nor ncclshim has shared memory");
        doctor_advise(f, "mount a tmpfs on /dev/shm, or name another with NCCLSHIM_LOG_DIR");
        return;
    }
    unit_bytes(s->bytes, size);
    unit_bytes(s->free_bytes, left);
    unit_bytes(s->log_bytes, logs);
    if (s->bytes && s->free_bytes < 16 * MIB)
        f = doctor_add(l, DOCTOR_BAD, "shm",
                       "/dev/shm is full: %s free of %s, %s of it ncclshim's logs", left, size,
                       logs);
    else if (s->bytes && s->bytes < GIB)
        f = doctor_add(l, DOCTOR_WARN, "shm",
                       "/dev/shm is small: %s, %s free, %s of it ncclshim's logs", size, left,
                       logs);
    else
        f = doctor_add(l, DOCTOR_OK, "shm", "/dev/shm %s, %s free, %s of it ncclshim's logs",
                       s->bytes ? size : "without a limit", s->bytes ? left : "all", logs);
    if (f && f->level == DOCTOR_BAD && s->log_bytes > 16 * MIB)
        doctor_advise(f, "ncclshim clean removes logs of processes that are gone");
    else if (f && f->level != DOCTOR_OK)
        doctor_advise(f, "NCCL's shared-memory transport wants room here, and the shim takes 1/32 "
                         "for each rank at most; in a "
                         "container: docker run --shm-size=16g, or a memory volume on /dev/shm");
    doctor_fact(f, "bytes", json_u64(s->bytes));
    doctor_fact(f, "free_bytes", json_u64(s->free_bytes));
    doctor_fact(f, "log_bytes", json_u64(s->log_bytes));
}

/* ---- locked memory -------------------------------------------------------------------------- */

/* "Max locked memory         8388608              8388608              bytes" */
void doctor_memlock_judge(struct doctor_list *l, const char *root, int pid)
{
    char path[DOCTOR_PATH], text[UNIT_SIZE], *limits, *at, *end;
    struct doctor_finding *f;
    uint64_t bytes;

    if (pid)
        doctor_path(path, root, "/proc/%d/limits", pid);
    else
        doctor_path(path, root, "/proc/self/limits");
    limits = doctor_slurp(path, 16384, NULL);
    at = limits ? strstr(limits, "Max locked memory") : NULL;
    if (!at) {
        doctor_add(l, DOCTOR_UNKNOWN, "memlock", "the limit of locked memory can't be read");
        free(limits);
        return;
    }
    at += strlen("Max locked memory");
    at += strspn(at, " ");
    bytes = strtoull(at, &end, 10);
    if (end == at) {
        f = doctor_add(l, DOCTOR_OK, "memlock", "locked memory is not limited");
        doctor_fact(f, "bytes", json_null());
    } else if (doctor_has_entries(root, "/sys/class/infiniband") && bytes < GIB) {
        f = doctor_add(l, DOCTOR_WARN, "memlock",
                       "locked memory is limited to %s: NCCL can't register its buffers with the "
                       "RDMA cards here",
                       unit_bytes(bytes, text));
        doctor_advise(
            f,
            "ulimit -l unlimited, LimitMEMLOCK=infinity (systemd), --ulimit memlock=-1 (docker)");
        doctor_fact(f, "bytes", json_u64(bytes));
    } else {
        f = doctor_add(l, DOCTOR_OK, "memlock",
                       "locked memory is limited to %s; without RDMA nothing here needs more",
                       unit_bytes(bytes, text));
        doctor_fact(f, "bytes", json_u64(bytes));
    }
    free(limits);
}

/* ---- containers ----------------------------------------------------------------------------- */

static const char *container_of(const char *root, int pid)
{
    static const struct {
        const char *mark, *name;
    } marks[] = {{"kubepods", "Kubernetes"},   {"docker", "Docker"}, {"libpod", "Podman"},
                 {"containerd", "containerd"}, {"crio", "CRI-O"},    {"lxc", "LXC"},
                 {"/slurm", "Slurm"}};
    char path[DOCTOR_PATH], self[16], *text;
    const char *found = NULL;
    struct stat st;

    snprintf(self, sizeof(self), pid ? "%d" : "self", pid);
    text = doctor_slurp(doctor_path(path, root, "/proc/%s/cgroup", self), 16384, NULL);
    for (size_t i = 0; text && !found && i < sizeof(marks) / sizeof(marks[0]); i++)
        if (strstr(text, marks[i].mark))
            found = marks[i].name;
    free(text);
    if (!found && stat(doctor_path(path, root, "/proc/%s/root/.dockerenv", self), &st) == 0)
        found = "Docker";
    if (!found && stat(doctor_path(path, root, "/proc/%s/root/run/.containerenv", self), &st) == 0)
        found = "Podman";
    return found;
}

/* "0 0 4294967295" is the first user namespace. */
static bool mapped_users(const char *root, int pid)
{
    char path[DOCTOR_PATH], line[128];
    unsigned long inside, outside, count;

    if (pid)
        doctor_path(path, root, "/proc/%d/uid_map", pid);
    else
        doctor_path(path, root, "/proc/self/uid_map");
    if (!doctor_line_of(path, line, sizeof(line)) ||
        sscanf(line, "%lu %lu %lu", &inside, &outside, &count) != 3)
        return false;
    return inside || outside || count != 4294967295ul;
}

void doctor_container_judge(struct doctor_list *l, const char *root, int pid)
{
    const char *name = container_of(root, pid);
    bool users = mapped_users(root, pid);
    struct doctor_finding *f;

    if (name && strcmp(name, "Slurm") != 0)
        f = doctor_add(l, DOCTOR_OK, "container",
                       "%s: /dev/shm and process numbers are the container's own%s", name,
                       users ? ", and so are users (root here is an ordinary user outside)" : "");
    else if (name)
        f = doctor_add(l, DOCTOR_OK, "container", "a job of Slurm, no container is seen");
    else if (users)
        f = doctor_add(l, DOCTOR_OK, "container",
                       "a user namespace: root here is an ordinary user outside");
    else
        f = doctor_add(l, DOCTOR_OK, "container", "no container");
    doctor_fact(f, "name", name ? json_text(name) : json_null());
    doctor_fact(f, "user_namespace", json_boolean(users));
}
