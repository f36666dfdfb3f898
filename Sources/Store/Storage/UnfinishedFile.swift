import Core
import Dispatch
import Foundation
import Synchronization

/// A file that gets its name once it is complete, so that the name never refers to a part, and no existing file is replaced. Until then it is
/// `NAME.partial`.
///
/// It is deleted when a signal ends the process (``UnfinishedFiles``). The next attempt replaces the files of a killed process.
package final class UnfinishedFile: Sendable {
    package let path: String
    /// The file to write, which is empty, with mode 0600.
    package let partialPath: String
    private let noun: String
    /// Keeps other processes from writing a file of the same name. It is a file of its own, since SQLite locks a copy. A killed process leaves it,
    /// without the lock.
    private let lock: Int32

    private var temporaryPaths: [String] { ["", "-journal", "-wal", "-shm", ".lock"].map { partialPath + $0 } }

    /// - Parameters:
    ///   - noun: its kind, for messages: `backup`.
    ///   - path: the name that it gets.
    /// - Throws: `StoreError` with `cannotCreate` when the file exists or can't be created, `locked` while another process writes it, `invalid` for `-`.
    package init(_ noun: String, at path: String) throws(StoreError) {
        guard path != "-" else { throw StoreError(code: .invalid, message: "\(noun) \(Self.noOutput)") }
        (self.noun, self.path, partialPath) = (noun, path, path + ".partial")
        lock = try Self.lock(partialPath + ".lock", writing: "\(noun) \(path)")
        // All properties are set by now: deinit deletes the files.
        UnfinishedFiles.note(temporaryPaths)
        // Before the file is written, which may take long; the link decides.
        guard access(path, F_OK) != 0 else { throw Self.failure("\(noun) \(path)", EEXIST) }
        unlink(partialPath)
        let file = open(partialPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Self.failure(partialPath, errno) }
        close(file)
    }

    /// Completes the message for a file named `-`, by which other commands mean standard output.
    package static let noOutput = "can't be written to standard output (-): give the name of a file, ./- for one of that name"

    /// Gives the file its name. Its contents must be synced.
    ///
    /// - Throws: `StoreError` with `cannotCreate`
    package func finish() throws(StoreError) {
        try finish { link($0, $1) }
    }

    /// - Parameter link: makes a hard link, like `link(2)`.
    func finish(link: (String, String) -> Int32) throws(StoreError) {
        guard Self.name(partialPath, path, link: link) else { throw Self.failure("\(noun) \(path)", errno) }
    }

    /// Gives a complete file its name, durably, unless a file has that name. The partial one may still be there then.
    ///
    /// - Parameter link: makes a hard link, like `link(2)`.
    /// - Returns: false with `errno`.
    package static func name(_ partialPath: String, _ path: String, link: (String, String) -> Int32) -> Bool {
        guard link(partialPath, path) == 0 || [EPERM, EACCES, EOPNOTSUPP, ENOSYS].contains(errno) && moveOverEmptyFile(partialPath, path)
        else {
            return false
        }
        syncFolder(of: path)
        return true
    }

    /// For file systems without hard links, such as FAT and SMB shares: takes the name with an empty file, and replaces that.
    private static func moveOverEmptyFile(_ partialPath: String, _ path: String) -> Bool {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { return false }
        close(file)
        guard rename(partialPath, path) != 0 else { return true }
        let code = errno
        unlink(path)
        errno = code
        return false
    }

    deinit {
        UnfinishedFiles.delete(temporaryPaths)
        close(lock)
    }

    /// Makes the names in the folder of a file durable.
    package static func syncFolder(of path: String) {
        // A folder that this user can't read is not synced.
        let folder = open(URL(fileURLWithPath: path).deletingLastPathComponent().path, O_RDONLY | O_CLOEXEC)
        fsync(folder)
        close(folder)
    }

    private static func failure(_ name: String, _ code: Int32) -> StoreError {
        StoreError(code: .cannotCreate, message: "\(name) \(DiskSpace.creationFailure(code))")
    }

    private static func lock(_ path: String, writing name: String) throws(StoreError) -> Int32 {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw failure(path, errno) }
        var (opened, named) = (stat(), stat())
        // Some file systems have no locks. A former holder of the lock may have removed the file after it was opened here.
        guard flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK, fstat(file, &opened) == 0, lstat(path, &named) == 0,
            opened.st_ino == named.st_ino
        else {
            close(file)
            throw StoreError(code: .locked, message: "\(name) is being written by another process: wait for it, or choose another name")
        }
        return file
    }
}

/// Deletes unfinished files when SIGTERM, SIGINT or SIGHUP ends the process. For commands; a daemon handles these signals itself.
package enum UnfinishedFiles {
    private static let paths = Mutex<Set<String>>([])
    /// Signals that are ignored, as SIGHUP by nohup(1), stay ignored.
    ///
    /// Safe to share: they are only kept alive.
    private nonisolated(unsafe) static let sources: [any DispatchSourceSignal] = [SIGTERM, SIGINT, SIGHUP].compactMap { number in
        let former = signal(number, SIG_IGN)
        guard unsafeBitCast(former, to: Int.self) != unsafeBitCast(SIG_IGN, to: Int.self) else { return nil }
        let source = DispatchSource.makeSignalSource(signal: number, queue: DispatchQueue.global())
        source.setEventHandler {
            paths.withLock { paths in
                for path in paths { unlink(path) }
                // The parent sees which signal ended the process. Sent to the process instead of this thread, it could be read by the source again.
                signal(number, SIG_DFL)
                var own = sigset_t()
                sigemptyset(&own)
                sigaddset(&own, number)
                pthread_sigmask(SIG_UNBLOCK, &own, nil)
                raise(number)
                // The first process of a container survives that, and must not continue without its files.
                _exit(128 + number)
            }
        }
        source.activate()
        return source
    }

    package static func note(_ files: [String]) {
        _ = sources
        paths.withLock { $0.formUnion(files) }
    }

    package static func delete(_ files: [String]) {
        paths.withLock { paths in
            for file in files { unlink(file) }
            paths.subtract(files)
        }
    }
}
