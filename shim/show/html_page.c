/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <string.h>

#include "shim/show/html.h"
#include "shim/show/term.h"

static const char style[] =
    ":root{color-scheme:light "
    "dark;--bg:#fcfcfb;--card:#fff;--ink:#1b1b1a;--soft:#62615c;--line:#dddcd6;"
    "--a:#2a78d6;--b:#d9632a;--c:#1a9a6c;--bad:#b3261e;--fast:#0f7a4f}"
    "@media(prefers-color-scheme:dark){:root{--bg:#161615;--card:#1f1f1d;--ink:#edece7;--soft:#"
    "a3a19a;"
    "--line:#3a3936;--a:#5a9ff0;--b:#ef8a55;--c:#3dbb8a;--bad:#ff8a80;--fast:#5ad6a0}}"
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}"
    "body{margin:0 auto;max-width:1180px;padding:20px 16px "
    "60px;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}"
    "h1{font-size:1.5rem;line-height:1.25;margin:.2em 0 .6em;overflow-wrap:anywhere}"
    "h2{font-size:1.1rem;margin:0 0 .1em}h3{font-size:.95rem;margin:1em 0 .3em}"
    "section,.facts,.notice{background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "padding:14px 16px;margin:14px 0}"
    ".notice{border-color:var(--b);font-weight:600}"
    ".facts{display:grid;grid-template-columns:max-content 1fr;gap:3px 16px;margin-top:0}"
    ".facts dt{color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}"
    ".note{color:var(--soft);margin:0 0 .7em;font-size:.88rem}"
    ".wide{overflow-x:auto;-webkit-overflow-scrolling:touch}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.9rem}"
    "th{color:var(--soft);font-weight:500;text-align:right;border-bottom:1px solid var(--line)}"
    "th,td{padding:4px 10px 4px 0;white-space:nowrap;vertical-align:top}td{text-align:right}"
    "td.l,th.l{text-align:left}td.v{white-space:normal;overflow-wrap:anywhere;text-align:left;min-"
    "width:8em}"
    "tr+tr td{border-top:1px solid var(--line)}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:10px;margin:"
    "14px 0}"
    ".tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px "
    "14px}"
    ".tile b{display:block;font-size:1.35rem;font-weight:650;line-height:1.25}.tile "
    "span{color:var(--soft);font-size:.85rem}"
    ".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,330px),1fr));gap:"
    "14px}"
    "figure{margin:0}figcaption{font-size:.88rem;margin-bottom:2px}figcaption "
    "i{color:var(--soft);font-style:normal}"
    "svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);font:18px "
    "system-ui,sans-serif}"
    ".time text{font-size:8px}.bars "
    "text{font-size:12px}.bars{max-width:720px}figure{max-width:440px}"
    "@media(max-width:700px){.time text,.bars text{font-size:17px}figure{max-width:none}}"
    "svg .ink{fill:var(--ink)}svg .axis{stroke:var(--line);stroke-width:1}"
    "ul.hints{margin:.2em 0 0;padding-left:1.2em}ul.hints li{margin:.3em 0}ul.hints "
    ".bad{color:var(--bad)}"
    ".slower{color:var(--bad);font-weight:600}.faster{color:var(--fast);font-weight:600}"
    ".key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .35em 0 .8em}"
    "footer{color:var(--soft);font-size:.85rem;margin-top:24px}"
    "@media(max-width:520px){body{padding:12px 10px 40px}section,.facts{padding:12px}"
    ".facts{grid-template-columns:1fr;gap:0}.facts dd{margin-bottom:6px}}"
    "@media "
    "print{:root{--bg:#fff;--card:#fff;--ink:#000;--soft:#444;--line:#bbb;--a:#1f5fae;--b:#b84d16;-"
    "-c:#12724f;"
    "--bad:#a00;--fast:#065}body{max-width:none;padding:0;font-size:11px}section,figure,.facts{"
    "break-inside:avoid}"
    ".wide{overflow:visible}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}";

void html_text(struct sink *s, const char *text)
{
    char safe[4096];

    safe_text(text, safe, sizeof(safe));
    for (const char *c = safe; *c; c++) {
        if (*c == '&')
            sink_text(s, "&amp;");
        else if (*c == '<')
            sink_text(s, "&lt;");
        else if (*c == '>')
            sink_text(s, "&gt;");
        else if (*c == '"')
            sink_text(s, "&quot;");
        else
            sink_bytes(s, c, 1);
    }
}

static void html_vtextf(struct sink *s, const char *fmt, va_list ap)
{
    char text[2048];

    vsnprintf(text, sizeof(text), fmt, ap);
    html_text(s, text);
}

void html_textf(struct sink *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    html_vtextf(s, fmt, ap);
    va_end(ap);
}

void html_begin(struct sink *s, const char *title, bool simulated)
{
    sink_text(s, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                 "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                 "'none';style-src 'unsafe-inline';img-src data:\">"
                 "<link rel=\"icon\" href=\"data:,\"><title>");
    html_text(s, title);
    sink_text(s, "</title><style>");
    sink_text(s, style);
    sink_text(s, "</style></head><body>\n<h1>");
    html_text(s, title);
    sink_text(s, "</h1>\n");
    if (simulated)
        sink_text(s, "<p class=\"notice\">SIMULATED: no GPU took part; times come from the "
                     "stand-in driver</p>\n");
}

void html_end(struct sink *s)
{
    sink_text(s, "<footer>Written by ncclshim " NCCLSHIM_VERSION
                 ". Times are by the GPU's clock.</footer>\n</body></html>\n");
}

void html_section(struct sink *s, const char *title, const char *note)
{
    sink_text(s, "<section><h2>");
    html_text(s, title);
    sink_text(s, "</h2>");
    if (note && note[0]) {
        sink_text(s, "<p class=\"note\">");
        html_text(s, note);
        sink_text(s, "</p>");
    }
    sink_text(s, "\n");
}

void html_section_end(struct sink *s)
{
    sink_text(s, "</section>\n");
}

void html_fact(struct sink *s, const char *label, const char *fmt, ...)
{
    va_list ap;

    sink_text(s, "<dt>");
    html_text(s, label);
    sink_text(s, "</dt><dd>");
    va_start(ap, fmt);
    html_vtextf(s, fmt, ap);
    va_end(ap);
    sink_text(s, "</dd>\n");
}

void html_td(struct sink *s, const char *fmt, ...)
{
    va_list ap;

    sink_text(s, "<td>");
    va_start(ap, fmt);
    html_vtextf(s, fmt, ap);
    va_end(ap);
    sink_text(s, "</td>");
}

void html_td_left(struct sink *s, const char *fmt, ...)
{
    va_list ap;

    sink_text(s, "<td class=\"l\">");
    va_start(ap, fmt);
    html_vtextf(s, fmt, ap);
    va_end(ap);
    sink_text(s, "</td>");
}
