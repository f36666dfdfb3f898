package import Foundation

/// Files of this repository that tests read as data: articles, deployment files, vectors, scripts of other implementations.
package enum Repository {
    package static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized

    /// The file or folder at this path below the repository's root.
    package static func file(_ path: String) -> URL {
        root.appending(path: path)
    }
}
