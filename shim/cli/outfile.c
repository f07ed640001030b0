/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/replace.h"

static int cant_write(const char *path, struct error *e)
{
    return error_set(e, path, 0, "can't be written: %s", strerror(errno));
}

/* Through a stream on fd, which it closes. */
static int write_to(int fd, const char *path, outfile_writer *write, const void *what,
                    struct error *e)
{
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    int rc;

    if (!out) {
        cant_write(path, e);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    e->text[0] = '\0';
    rc = write(what, out, e);
    if ((fclose(out) != 0 && rc == 0) || (rc < 0 && !e->text[0]))
        rc = cant_write(path, e);
    return rc;
}

static int replace(const char *path, outfile_writer *write, const void *what, struct error *e)
{
    struct replacement r;
    int rc;

    if (replace_begin_path(&r, path, 0666) < 0)
        return cant_write(path, e);
    rc = write_to(fcntl(r.fd, F_DUPFD_CLOEXEC, 0), path, write, what, e);
    if (replace_end(&r, rc == 0) < 0 && rc == 0)
        rc = cant_write(path, e);
    return rc;
}

int outfile_write(const char *path, outfile_writer *write, const void *what, struct error *e)
{
    struct stat there;
    char *file;
    int rc;

    if (stat(path, &there) < 0)
        return replace(path, write, what, e);
    if (!S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
        return write_to(open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY), path, write, what, e);
    file = realpath(path, NULL);
    rc = file ? replace(file, write, what, e) : cant_write(path, e);
    free(file);
    return rc;
}
