import Foundation

/// Where a node's admin socket is: `admin.sock` in its data folder.
///
/// The path of a socket has room for 107 bytes. A longer one is named through the open folder; it holds as long as this value.
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

    deinit {
        if folder >= 0 { close(folder) }
    }
}
