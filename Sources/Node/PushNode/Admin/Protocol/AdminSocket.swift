import Foundation

/// The location of a node's admin socket: `admin.sock` in its data folder.
///
/// The path of a Unix socket is limited to 107 bytes. A longer one is replaced by a path through the open folder, which is valid as long as
/// this object exists.
package final class AdminSocket: Sendable {
    private static let longestPath = 107

    package let path: String
    private let folder: Int32

    /// nil when the folder can't be opened.
    package init?(in folder: String) {
        let plain = folder + "/admin.sock"
        if plain.utf8.count <= Self.longestPath {
            self.folder = -1
            path = plain
        } else {
            let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            self.folder = descriptor
            path = "/proc/self/fd/\(descriptor)/admin.sock"
            guard descriptor >= 0 else { return nil }
        }
    }

    /// The error of a connection to the socket; nil if it is accepted.
    package var connectionError: Int32? {
        let handle = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard handle >= 0 else { return errno }
        defer { close(handle) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(Self.longestPath)) }
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(handle, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        return status == 0 ? nil : errno
    }

    deinit {
        if folder >= 0 { close(folder) }
    }
}
