import Foundation
import Synchronization

/// Ports that were handed out.
private let given = Mutex<Set<UInt16>>([])

/// A port of 127.0.0.1 that nobody listened on just now. Not one of those that the system gives to whoever asks for any, so that it stays free.
package func freePort() throws -> UInt16 {
    for _ in 0..<1000 {
        let port = UInt16.random(in: 12_000..<32_000)
        if isFree(port), given.withLock({ $0.insert(port).inserted }) { return port }
    }
    throw POSIXError(.EADDRNOTAVAIL)
}

private func isFree(_ port: UInt16) -> Bool {
    let probe = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(probe) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(probe, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
    }
}
