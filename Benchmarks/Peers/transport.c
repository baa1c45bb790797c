// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// The peer of the transport benchmark: small requests by libcurl's multi interface, with nothing above it.
//
// cc -O2 -o transport-peer transport.c -lcurl && ./transport-peer URL COUNT IN-FLIGHT
// prints the seconds that it took and the microseconds of processor time.

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

int main(int count, char **arguments) {
    if (count < 4) return 2;
    long remaining = atol(arguments[2]), inFlight = atol(arguments[3]), failed = 0;
    curl_global_init(CURL_GLOBAL_ALL);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    CURLM *multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, setTimer);
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    int running = 0, open = 0;
    for (long index = 0; index < inFlight && remaining > 0; index++, remaining--, open++) {
        CURL *easy = curl_easy_init();
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
        curl_easy_setopt(easy, CURLOPT_URL, arguments[1]);
        curl_multi_add_handle(multi, easy);
    }
    while (open > 0) {
        struct epoll_event events[64];
        int found = epoll_wait(epoll, events, 64, (int)timeout);
        if (found == 0) curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        for (int index = 0; index < found; index++) {
            int mask = 0;
            if (events[index].events & (EPOLLIN | EPOLLHUP)) mask |= CURL_CSELECT_IN;
            if (events[index].events & EPOLLOUT) mask |= CURL_CSELECT_OUT;
            if (events[index].events & EPOLLERR) mask |= CURL_CSELECT_ERR;
            curl_multi_socket_action(multi, events[index].data.fd, mask, &running);
        }
        int left;
        CURLMsg *message;
        while ((message = curl_multi_info_read(multi, &left)) != NULL) {
            if (message->msg != CURLMSG_DONE) continue;
            CURL *easy = message->easy_handle;
            if (message->data.result != CURLE_OK) failed++;
            curl_multi_remove_handle(multi, easy);
            open--;
            if (remaining == 0) continue;
            remaining--;
            open++;
            curl_easy_setopt(easy, CURLOPT_URL, arguments[1]);
            curl_multi_add_handle(multi, easy);
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    double processor = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6
                       + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    printf("%.6f %.0f %ld\n", seconds, processor, failed);
    return failed == 0 ? 0 : 1;
}
