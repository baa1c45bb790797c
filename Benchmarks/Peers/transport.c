// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

// The peer of the transport benchmark: small requests by libcurl's multi interface, with nothing above it.
//
// transport-peer URL COUNT IN-FLIGHT
//     prints the seconds that it took, the microseconds of processor time, and the number of failures.
// transport-peer hold URL COUNT
//     says that it is ready, waits for a line, and begins so many requests at once to a server that does not answer.
// transport-peer http2 URL COUNT IN-FLIGHT CERTIFICATE
//     does the same as the first form with HTTP/2 over TLS, after a tenth of the requests without measurement, and
//     trusts only the certificate in the file. A response with another version or status is a failure.

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

static int epoll;
static long timeout = -1;
static size_t received;
// The file with the certificate of a server with HTTP/2, or NULL for HTTP/1.1 without TLS.
static const char *certificate;

static size_t receive(char *data, size_t size, size_t count, void *context) {
    (void)data;
    (void)context;
    received += size * count;
    return size * count;
}

static int watch(CURL *easy, curl_socket_t socket, int what, void *context, void *known) {
    (void)easy;
    struct epoll_event event = {.data.fd = socket};
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(epoll, EPOLL_CTL_DEL, socket, &event);
        curl_multi_assign((CURLM *)context, socket, NULL);
        return 0;
    }
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    epoll_ctl(epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
    curl_multi_assign((CURLM *)context, socket, (void *)1);
    return 0;
}

static int setTimer(CURLM *multi, long milliseconds, void *context) {
    (void)multi;
    (void)context;
    timeout = milliseconds;
    return 0;
}

static CURLM *makeMulti(void) {
    curl_global_init(CURL_GLOBAL_ALL);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    CURLM *multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, setTimer);
    return multi;
}

static void begin(CURLM *multi, const char *url) {
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    if (certificate != NULL) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, certificate);
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
        // The request waits for the first connection instead of opening a second one.
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    }
    curl_multi_add_handle(multi, easy);
}

/// Waits for events, and lets libcurl act on them.
static void turn(CURLM *multi) {
    struct epoll_event events[64];
    int running;
    int found = epoll_wait(epoll, events, 64, (int)timeout);
    if (found == 0) curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    for (int index = 0; index < found; index++) {
        int mask = 0;
        if (events[index].events & (EPOLLIN | EPOLLHUP)) mask |= CURL_CSELECT_IN;
        if (events[index].events & EPOLLOUT) mask |= CURL_CSELECT_OUT;
        if (events[index].events & EPOLLERR) mask |= CURL_CSELECT_ERR;
        curl_multi_socket_action(multi, events[index].data.fd, mask, &running);
    }
}

_Noreturn static void hold(const char *url, long count) {
    CURLM *multi = makeMulti();
    puts("ready");
    fflush(stdout);
    getchar();
    for (long index = 0; index < count; index++) begin(multi, url);
    while (1) turn(multi);
}

/// Returns whether a response came with HTTP/2 and the status 200, which is not checked without HTTP/2.
static int isGood(CURL *easy) {
    if (certificate == NULL) return 1;
    long version = 0, status = 0;
    curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return version == CURL_HTTP_VERSION_2_0 && status == 200;
}

/// Sends requests, and returns the number of failures.
static long run(CURLM *multi, const char *url, long remaining, long inFlight) {
    long failed = 0, open = 0;
    for (; open < inFlight && remaining > 0; remaining--, open++) begin(multi, url);
    while (open > 0) {
        turn(multi);
        int left;
        CURLMsg *message;
        while ((message = curl_multi_info_read(multi, &left)) != NULL) {
            if (message->msg != CURLMSG_DONE) continue;
            CURL *easy = message->easy_handle;
            if (message->data.result != CURLE_OK || !isGood(easy)) failed++;
            curl_multi_remove_handle(multi, easy);
            open--;
            if (remaining == 0) {
                curl_easy_cleanup(easy);
                continue;
            }
            remaining--;
            open++;
            curl_easy_setopt(easy, CURLOPT_URL, url);
            curl_multi_add_handle(multi, easy);
        }
    }
    return failed;
}

/// Returns the microseconds of processor time that the process has used.
static double processorTime(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6
           + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int measure(const char *url, long count, long inFlight) {
    CURLM *multi = makeMulti();
    long failed = 0;
    double before = 0;
    if (certificate != NULL) {
        // The first requests establish the connection.
        failed += run(multi, url, count / 10 > 100 ? count / 10 : 100, inFlight);
        before = processorTime();
    }
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    failed += run(multi, url, count, inFlight);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    printf("%.6f %.0f %ld\n", seconds, processorTime() - before, failed);
    return failed == 0 ? 0 : 1;
}

int main(int count, char **arguments) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (count == 6 && strcmp(arguments[1], "http2") == 0) {
        certificate = arguments[5];
        return measure(arguments[2], atol(arguments[3]), atol(arguments[4]));
    }
    if (count != 4) return 2;
    if (strcmp(arguments[1], "hold") == 0) hold(arguments[2], atol(arguments[3]));
    return measure(arguments[1], atol(arguments[2]), atol(arguments[3]));
}
