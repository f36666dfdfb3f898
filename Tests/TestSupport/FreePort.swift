import Foundation
import Synchronization

/// Sockets of the ports given out.
private let reserved = Mutex<[Int32]>([])

/// A free port of 127.0.0.1 for servers that set `SO_REUSEADDR`, as the servers under test and Python's do.
///
/// It stays bound, without listening, while this process runs, so that the system does not assign it to another socket before
/// the server starts.
package func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var isReused: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isReused, socklen_t(MemoryLayout<Int32>.size))
    reserved.withLock { $0.append(descriptor) }
    return try LoopbackAddress.bindFreePort(descriptor)
}
