import Foundation
import PushClient

/// A lock on the folder of a client's state, held by one process while this value exists. The system releases it when the process is killed.
final class ClientFolderLock: Sendable {
    let folder: String
    private let descriptor: Int32

    /// - Throws: `ClientStoreError` with `permission`, `locked` or `unavailable`
    init(_ folder: String) throws(ClientStoreError) {
        self.folder = folder
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            guard (error as? CocoaError)?.code != .fileWriteOutOfSpace else { throw .full(folder) }
            throw ClientStoreError(code: .permission, message: "folder \(folder) can't be made: make it, or choose another")
        }
        descriptor = open(folder + "/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw ClientStoreError(opening: folder, errno, denied: "folder \(folder) can't be written to: give this user access to it")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            // All properties are initialized here, so deinit closes the file.
            guard errno == EWOULDBLOCK else {
                throw ClientStoreError(code: .unavailable, message: "folder \(folder) can't be locked now (error \(errno)): try again")
            }
            throw ClientStoreError(
                code: .locked,
                message: "client state in \(folder) is in use by another process or store: stop that one, or choose another folder")
        }
    }

    deinit {
        close(descriptor)
    }
}
