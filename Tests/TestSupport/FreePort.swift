import Foundation
import Synchronization

/// Those that were given out.
private let reserved = Mutex<[Int32]>([])

/// A port of 127.0.0.1 that nobody listens on, and that a server which sets `SO_REUSEADDR` may listen on: the servers under test do, and
/// Python's.
///
/// It stays bound, without listening, for as long as this process runs: so the system gives it to nobody who asks for any port, and it can't
/// be taken between here and the server's start.
package func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var isReused: Int32 = 1
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isReused, socklen_t(MemoryLayout<Int32>.size)) == 0
                && bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
        }
    }
    reserved.withLock { $0.append(descriptor) }
    guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
    return UInt16(bigEndian: address.sin_port)
}
