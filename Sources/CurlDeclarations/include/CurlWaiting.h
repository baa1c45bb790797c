// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

// What Swift's module of the C library leaves out: waiting for many sockets, being woken from it, and what a thread that
// does so must know.

#ifndef OPERATIONKIT_CURL_WAITING_H
#define OPERATIONKIT_CURL_WAITING_H

#if defined(__linux__)

#include <stdbool.h>
#include <stdint.h>

enum { OKPollIn = 1, OKPollOut = 4, OKPollError = 8, OKPollHangUp = 16 };

typedef struct {
    int socket;
    unsigned int mask;
} OKPollEvent;

/// An object to wait with, closed in child processes that execute something; -1 if there is no descriptor left.
int OKPollMake(void);

/// Watches a socket for `mask`, or no longer if that is 0. `isWatched` says whether it was watched.
void OKPollWatch(int poll, int socket, unsigned int mask, bool isWatched);

/// Waits for at most `milliseconds`, or for ever if that is -1; gives the number of events.
int OKPollWait(int poll, OKPollEvent *events, int capacity, int milliseconds);

/// A counter that can be waited for.
int OKBellMake(void);

/// The port at our end of an IPv4 or IPv6 socket; 0 if there is none.
uint16_t OKLocalPort(int socket);

/// Names the calling thread.
void OKThreadSetName(const char *name);

/// How often this process was forked, as seen by the child: it is raised in each child.
int OKForkCount(void);

#endif
#endif
