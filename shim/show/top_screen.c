/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/top_screen.h"

#include <locale.h>
#include <signal.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/show/term.h"

static volatile sig_atomic_t leave;

static void on_signal(int number)
{
    (void)number;
    leave = 1;
}

/* The terminal must be put right again whatever ends us, so the usual signals only set a flag. */
static void catch_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal};

    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
}

static int draw(const struct live *l, enum top_sort sort, bool paused)
{
    int width, height, y = 0;
    char *text = NULL, *save, *line, *at;
    size_t size;
    FILE *out;

    getmaxyx(stdscr, height, width);
    out = open_memstream(&text, &size);
    if (!out || top_frame(l, sort, width - 1, height - 1, out) < 0) {
        if (out)
            fclose(out);
        free(text);
        return -1;
    }
    fclose(out);
    erase();
    for (at = text; at && *at && y < height - 1; y++) { /* strtok would swallow empty lines */
        save = strchr(at, '\n');
        line = at;
        if (save)
            *save = '\0';
        at = save ? save + 1 : NULL;
        if (y == 0)
            attron(A_BOLD);
        mvaddnstr(y, 0, line,
                  (int)text_fit(line, (size_t)width)); /* a longer one would run into the next */
        attroff(A_BOLD);
    }
    attron(A_DIM);
    mvprintw(height - 1, 0, "%s",
             paused ? "paused: p goes on, q leaves" : "q leaves   s sorts otherwise   p pauses");
    attroff(A_DIM);
    refresh();
    free(text);
    return 0;
}

static long long ms_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Keys until it is time for the next look. Returns false when the user leaves. */
static bool wait_and_listen(const struct live *l, int interval_ms, enum top_sort *sort,
                            bool *paused)
{
    long long until = ms_now() + interval_ms;

    for (;;) {
        long long left = until - ms_now();
        int key;
        if (leave)
            return false;
        if (left <= 0 && !*paused)
            return true;
        timeout(left > 0 && left < 200 ? (int)left : 200);
        key = getch();
        if (key == 'q' || key == 'Q' || key == 27)
            return false;
        if (key == 's')
            *sort = (*sort + 1) % TOP_SORTS;
        if (key == 'p' || key == ' ')
            *paused = !*paused;
        if (key != ERR && draw(l, *sort, *paused) < 0) /* a key, or the window's size changed */
            return false;
    }
}

int top_screen(struct live *l, int interval_ms, unsigned frames, struct error *e)
{
    enum top_sort sort = TOP_BY_TIME;
    bool paused = false;
    SCREEN *screen;
    int rc = 0;

    setlocale(LC_CTYPE, "");
    screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return error_set(e, "", 0,
                         "this terminal (TERM=%s) can't be drawn on; --batch prints plain text",
                         getenv("TERM") ? getenv("TERM") : "");
    set_term(screen);
    catch_signals();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    for (unsigned i = 0; (!frames || i < frames) && !leave; i++) {
        if (live_look(l) < 0 || draw(l, sort, paused) < 0) {
            rc = -1;
            break;
        }
        if (frames && i + 1 == frames)
            break;
        if (!wait_and_listen(l, interval_ms, &sort, &paused))
            break;
    }
    endwin();
    delscreen(screen);
    return rc < 0 ? error_set(e, "", 0, "out of memory") : 0;
}
