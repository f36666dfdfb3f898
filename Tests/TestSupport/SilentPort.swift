import Foundation

/// A port of 127.0.0.1 that answers no connection attempt while this object exists, as behind a firewall that drops packets.
package final class SilentPort: Sendable {
    package let number: UInt16
    private let listener: Int32
    private let waiting: Int32

    package init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        waiting = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        number = try LoopbackAddress.bindFreePort(listener)
        var address = LoopbackAddress(port: number)
        // A connection that is not accepted fills a queue without places for more.
        guard listen(listener, 0) == 0, address.withPointer({ connect(waiting, $0, $1) }) == 0 else { throw POSIXError(.EADDRNOTAVAIL) }
    }

    deinit {
        close(waiting)
        close(listener)
    }
}
