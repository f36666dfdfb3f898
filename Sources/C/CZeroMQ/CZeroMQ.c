#include "CZeroMQ.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "../OptionalLibrary.h"

OPTIONAL_LIBRARY_OPEN(czeromq, CZEROMQ_FUNCTIONS)
OPTIONAL_LIBRARY_NOTE("session", "Session push server: connections to storage servers", "recommended", CZEROMQ_SONAME)

long long czeromq_read_byte_count(int descriptor) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size)) return -1;
    // Older kernels know fewer members.
    if (size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return -1;
    int unread = 0;
    if (ioctl(descriptor, FIONREAD, &unread)) return -1;
    return (long long)info.tcpi_bytes_received - unread;
}
