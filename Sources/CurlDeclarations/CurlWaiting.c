// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#if defined(__linux__)

#define _GNU_SOURCE
#include "CurlWaiting.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

int OKPollMake(int bell) {
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = bell};
    epoll_ctl(poll, EPOLL_CTL_ADD, bell, &event);
    return poll;
}

void OKPollWatch(int poll, int socket, unsigned int mask, bool isWatched) {
    struct epoll_event event = {.events = mask, .data.fd = socket};
    if (mask == 0) {
        epoll_ctl(poll, EPOLL_CTL_DEL, socket, &event);
        return;
    }
    // The socket may have been closed without our knowledge, and another socket may have got its number.
    if (epoll_ctl(poll, isWatched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event) != 0)
        epoll_ctl(poll, isWatched ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, &event);
}

int OKPollWait(int poll, OKPollEvent *events, int capacity, int milliseconds) {
    struct epoll_event found[256];
    int count = epoll_wait(poll, found, capacity < 256 ? capacity : 256, milliseconds);
    for (int index = 0; index < count; index++) {
        events[index].socket = found[index].data.fd;
        events[index].mask = found[index].events;
    }
    return count < 0 ? 0 : count;
}

uint16_t OKLocalPort(int socket) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(socket, (struct sockaddr *)&address, &length) != 0) return 0;
    if (address.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&address)->sin_port);
    return address.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&address)->sin6_port) : 0;
}

bool OKIsClosed(int socket) {
    struct pollfd state = {.fd = socket, .events = POLLRDHUP};
    return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void OKThreadSetName(const char *name) { pthread_setname_np(pthread_self(), name); }

int OKBellMake(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

#endif
