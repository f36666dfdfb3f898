import Foundation

/// The Unix datagram socket on which the service manager receives notifications, sd_notify(3).
///
/// An address that starts with `/` is a path; one that starts with `@` is in the abstract namespace, a NUL byte in the `@`'s place.
struct NotifySocket: Sendable {
    /// The size of `sockaddr_un.sun_path`.
    private static let capacity = MemoryLayout.size(ofValue: sockaddr_un().sun_path)

    /// The contents of `sun_path`, the NUL at the end of a path included.
    private let name: [UInt8]

    /// nil for an address that is neither a path nor an abstract name, or is too long.
    init?(_ address: String) {
        let bytes = Array(address.utf8)
        guard bytes.count > 1, !bytes.contains(0) else { return nil }
        switch bytes[0] {
        case UInt8(ascii: "/"): name = bytes + [0]
        case UInt8(ascii: "@"): name = [0] + bytes.dropFirst()
        default: return nil
        }
        guard name.count <= Self.capacity else { return nil }
    }

    /// Sends one datagram without waiting.
    ///
    /// - Returns: Whether the socket accepted it.
    @discardableResult
    func send(_ notice: String) -> Bool {
        let handle = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard handle >= 0 else { return false }
        defer { close(handle) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(MemoryLayout.size(ofValue: address) - Self.capacity + name.count)
        let text = Array(notice.utf8)
        let sent = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(handle, text, text.count, Int32(MSG_DONTWAIT), $0, length)
            }
        }
        return sent == text.count
    }
}
