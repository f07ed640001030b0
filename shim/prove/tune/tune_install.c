/* SPDX-License-Identifier: Apache-2.0 */
/* `tune --write NAME`: the profile that was found goes where its name finds it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/base/parents.h"
#include "shim/base/replace.h"
#include "shim/prove/tune/tune.h"

static int place_of(const struct tune *t, char *path, size_t size, struct error *e)
{
    const char *name = t->o.write, *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    size_t n = strlen(name);

    if (strchr(name, '/') || (n > 4 && !strcmp(name + n - 4, ".ini"))) {
        snprintf(path, size, "%s", name);
        return 0;
    }
    if (!n || !strcmp(name, "none") ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != n)
        return error_set(
            e, NULL, 0,
            "--write: '%s' is no name for a profile; letters, digits, '.', '_' and '-', or a path",
            name);
    if (xdg && xdg[0] == '/')
        snprintf(path, size, "%s/ncclshim/profiles/%s.ini", xdg, name);
    else if (home && *home)
        snprintf(path, size, "%s/.config/ncclshim/profiles/%s.ini", home, name);
    else
        return error_set(e, NULL, 0, "--write: HOME is not set; write a path instead of a name");
    return 0;
}

/* A profile that somebody wrote by hand is not overwritten. */
static bool is_ours(const char *path)
{
    char line[sizeof(TUNE_MARK)] = "";
    FILE *in = fopen(path, "re");

    if (in && fgets(line, sizeof(line), in) == NULL)
        line[0] = '\0';
    if (in)
        fclose(in);
    return !in || !strcmp(line, TUNE_MARK);
}

static int copy_over(const char *from, const char *to)
{
    struct replacement r;
    char bytes[4096];
    ssize_t n = 1;
    int in = open(from, O_RDONLY | O_CLOEXEC);

    if (in < 0)
        return -1;
    if (replace_begin_path(&r, to, 0666) < 0) {
        close(in);
        return -1;
    }
    while (n > 0 && (n = read(in, bytes, sizeof(bytes))) > 0)
        if (write_all(r.fd, bytes, (size_t)n) < 0)
            n = -1;
    close(in);
    return replace_end(&r, n == 0);
}

/* With t->profile "" it only looks whether it could: nobody wants to hear that after ten minutes.
 */
int tune_install(struct tune *t, struct error *e)
{
    char path[TUNE_PATH];

    if (!t->o.write)
        return 0;
    if (place_of(t, path, sizeof(path), e) < 0)
        return -1;
    if (!is_ours(path))
        return error_set(
            e, path, 0,
            "is there, and no work of tune: name another profile with --write, or move it");
    if (!t->profile[0])
        return 0;
    if (parents_make(path) < 0 || copy_over(t->profile, path) < 0)
        return error_set(e, path, 0, "can't be written: %s; the profile is in %s", strerror(errno),
                         t->profile);
    snprintf(t->written, sizeof(t->written), "%s", path);
    return tune_profile_loads(path, e);
}
