/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/prove/tune/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/base/paths.h"
#include "shim/log/read/reader.h"

/* `ncclshim run` makes its folder and then locks it: an empty one may be a moment old. */
#define EMPTY_AGE_S 60

static void leave(const struct sweep_options *o, struct sweep_result *r, const char *path,
                  const char *why)
{
    r->left++;
    o->tell(SWEEP_LEFT, path, why, 0);
}

/* Why a log must stay; NULL when it may go. *st becomes that of the open file. */
static const char *reason_to_stay(const struct log_file *f, struct stat *st, char *buf, size_t size)
{
    int pid;

    if (fstat(f->fd, st) < 0)
        return "it can't be looked at";
    if (st->st_uid != geteuid()) {
        snprintf(buf, size, "it belongs to user %u", (unsigned)st->st_uid);
        return buf;
    }
    switch (log_writer_find(f, &pid)) {
    case LOG_WRITER_LIVES:
        snprintf(buf, size, "process %d lives", pid);
        return buf;
    case LOG_WRITER_UNSEEN:
        snprintf(buf, size, "process %u of another container can't be seen from here", f->head.pid);
        return buf;
    case LOG_WRITER_GONE:
        break;
    }
    return NULL;
}

static void sweep_log(const struct sweep_options *o, struct sweep_result *r, int dirfd,
                      const char *name, const char *path)
{
    struct stat st, now;
    struct log_file *f;
    const char *why;
    char buf[96];
    struct error e;

    if (log_open_at(dirfd, name, path, &f, &e) < 0) {
        leave(o, r, path, e.text);
        return;
    }
    why = reason_to_stay(f, &st, buf, sizeof(buf));
    log_free(f);
    /* What is unlinked must be what was judged, should somebody have put another file there. */
    if (!why && (fstatat(dirfd, name, &now, AT_SYMLINK_NOFOLLOW) < 0 || now.st_ino != st.st_ino ||
                 now.st_dev != st.st_dev))
        why = "it was replaced meanwhile";
    if (!why && !o->dry_run && unlinkat(dirfd, name, 0) < 0)
        why = strerror(errno);
    if (why) {
        leave(o, r, path, why);
        return;
    }
    r->removed++;
    r->bytes += (uint64_t)st.st_blocks * 512;
    o->tell(SWEEP_REMOVED, path, NULL, (uint64_t)st.st_blocks * 512);
}

static bool sweep_folder(const struct sweep_options *o, struct sweep_result *r, int fd,
                         const char *path, bool top);

/* The folder of one `ncclshim run`, with its logs. */
static void sweep_private(const struct sweep_options *o, struct sweep_result *r, int dirfd,
                          const char *name, const char *path)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    unsigned removed = r->removed;
    struct stat st;
    bool free_to_go;

    if (fd < 0)
        return;
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid()) {
        leave(o, r, path, "the folder belongs to another user");
        close(fd);
        return;
    }
    free_to_go = sweep_folder(o, r, fd, path, false) && !o->dry_run &&
                 (r->removed > removed || time(NULL) - st.st_mtime >= EMPTY_AGE_S);
    if (free_to_go)
        unlinkat(dirfd, name, AT_REMOVEDIR); /* fails, as it should, while anything is in it */
    close(fd);
}

/* False when a collector is at work in it: then nothing was touched. */
static bool sweep_folder(const struct sweep_options *o, struct sweep_result *r, int fd,
                         const char *path, bool top)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again >= 0 ? fdopendir(again) : NULL;
    bool busy = flock(fd, LOCK_EX | LOCK_NB) < 0;
    struct dirent *entry;
    char full[4608];

    if (busy)
        leave(o, r, path, "a collector is at work in it");
    while (d && (entry = readdir(d))) {
        snprintf(full, sizeof(full), "%s/%s", path, entry->d_name);
        if (is_log_file_name(entry->d_name) && !busy)
            sweep_log(o, r, fd, entry->d_name, full);
        else if (top && !strncmp(entry->d_name, "run-", 4))
            sweep_private(o, r, fd, entry->d_name, full);
    }
    if (d)
        closedir(d);
    else if (again >= 0)
        close(again);
    flock(fd, LOCK_UN);
    return !busy;
}

int sweep(const struct sweep_options *o, struct sweep_result *r, struct error *e)
{
    int fd;

    memset(r, 0, sizeof(*r));
    if (access(o->log_dir, F_OK) < 0 && errno == ENOENT)
        return 0;
    fd = log_dir_open(o->log_dir, false, e);
    if (fd < 0)
        return -1;
    sweep_folder(o, r, fd, o->log_dir, true);
    close(fd);
    return 0;
}
