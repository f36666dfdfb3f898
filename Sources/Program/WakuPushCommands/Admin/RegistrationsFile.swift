import NodeAPI
import Foundation
import Core
import NodeAssembly
import Storage
import WakuCrypto

/// A file of exported registrations, encrypted for the same identity: a header line of JSON and an encrypted line for each record.
///
///     {"format":"waku-push registrations 1","file":"<32 hex digits>"}
///     base64(AES-256-GCM(JSON of a record)) …
///     base64(AES-256-GCM({"end":<number of records>}))
///
/// The key is derived from the identity. The associated data of a line is the file's random id and the line's index, so that lines can't be
/// removed, reordered or inserted. The last line marks a complete file.
enum RegistrationsFile {
    struct Header: Codable {
        static let format = "waku-push registrations 1"

        let format: String
        let file: String
    }

    struct Line: Codable {
        // The keys of the file. Each protocol declares its own lines.
        var record: Record?
        var v01: V01Record?
        var subscription: Subscription?
        var unsubscribedName: UnsubscribedName?
        var aheadTime: AheadTime?
        var v01RetiredToken: V01RetiredToken?
        var added: Added?
        var end: Int?

        private enum CodingKeys: String, CodingKey {
            case record, v01, subscription, aheadTime, v01RetiredToken, added, end
            case unsubscribedName = "leftName"
        }
    }

    /// A record of any protocol, to be stored unless a newer one is.
    struct Entry {
        /// The approximate size in memory.
        let byteCount: Int
        /// `Sealer.lookUpKeyMark` of the databases in which its hashes are found; nil: of any.
        var lookUpKey: Int64?
        /// nil for a registration that this release can't parse.
        let merge: (@Sendable (Sealer) -> StoreCommand<Bool>)?

        /// A registration that was stored as received, by a release whose parser accepted it.
        static let unparsable = Entry(byteCount: 0, merge: nil)
    }

    /// Far longer than the encoding of a registration of 2 MiB.
    static let maximumLineByteCount = 16 << 20

    static func key(of identity: PrivateKey) -> SymmetricKey {
        identity.derivedKey(purpose: "waku-push registrations file 1")
    }

    static func binding(_ file: String, _ index: Int) -> [UInt8] {
        Array(file.utf8) + withUnsafeBytes(of: UInt64(index).bigEndian, Array.init)
    }
}

/// Writes a ``RegistrationsFile`` with mode 0600. It gets its name by ``finish()``; a writer that is deallocated before leaves no file.
struct RegistrationsFileWriter {
    private enum Target {
        case file(UnfinishedFile, FileHandle)
        /// Standard output. A reader recognizes an incomplete one by the missing last line.
        case output
    }

    private let target: Target
    private let key: SymmetricKey
    private let id = hexString(randomBytes(16))
    private(set) var count = 0
    private let progress: (Int) -> Void
    /// Kept apart from the errors of the store, which reads the rows: a full disk under the file is not one.
    private var failure: (any Error)?

    /// - Parameters:
    ///   - path: `-` for standard output.
    ///   - progress: called with the number of records after each.
    /// - Throws: `StoreError` when the file exists already or can't be created, ``CommandFailure`` when the disk is full.
    init(_ path: String, identity: PrivateKey, progress: @escaping (Int) -> Void = { _ in }) throws {
        self.progress = progress
        key = RegistrationsFile.key(of: identity)
        if path == "-" {
            target = .output
        } else {
            let file = try UnfinishedFile("registrations file", at: path)
            let descriptor = open(file.partialPath, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
            target = .file(file, FileHandle(fileDescriptor: descriptor, closeOnDealloc: true))
        }
        let header = RegistrationsFile.Header(format: RegistrationsFile.Header.format, file: id)
        try write(Array((try? JSONEncoder().encode(header)) ?? Data()))
    }

    /// Writes a line with a record.
    ///
    /// - Returns: whether to go on with the next row.
    mutating func add(_ line: () throws -> RegistrationsFile.Line) -> Bool {
        guard failure == nil else { return false }
        do {
            try seal(try line())
            count += 1
            progress(count)
        } catch {
            failure = error
        }
        return failure == nil
    }

    /// - Throws: the error of the row that could not be written.
    func finish() throws {
        if let failure { throw failure }
        try seal(RegistrationsFile.Line(end: count))
        guard case .file(let file, let output) = target else { return }
        guard fsync(output.fileDescriptor) == 0 else { throw Self.full(file) }
        try file.finish()
    }

    private func seal(_ line: RegistrationsFile.Line) throws {
        let plain = Array(try JSONEncoder().encode(line))
        let sealed = AESGCM.seal(plain, key: key, layout: .nonceFirst, associatedData: RegistrationsFile.binding(id, count))
        try write(Array(Data(sealed).base64EncodedData()))
    }

    private func write(_ line: [UInt8]) throws(CommandFailure) {
        let text = String(decoding: line, as: UTF8.self) + "\n"
        switch target {
        case .file(let file, let output):
            guard StandardStream.write(text, to: output.fileDescriptor) else { throw Self.full(file) }
        case .output:
            guard Invocation.current.writeOutput(text) else { throw CommandFailure.outputFailed }
        }
    }

    private static func full(_ file: UnfinishedFile) -> CommandFailure {
        CommandFailure(.cannotCreate, "\(file.path) can't be written: is the disk full?")
    }
}

/// Reads a ``RegistrationsFile``.
struct RegistrationsFileReader {
    /// For messages.
    private let path: String
    private let key: SymmetricKey
    private let owner: PublicKey
    private let file: String
    private let lines: LineReader
    private(set) var count = 0

    /// - Parameter path: `-` for standard input.
    init(_ path: String, identity: PrivateKey) throws(CommandFailure) {
        let name = path == "-" ? "standard input" : path
        let (lines, line) = try Self.reading(name) { () throws(LineReader.Failure) in
            let lines = try LineReader(path, maximumLineByteCount: RegistrationsFile.maximumLineByteCount)
            return (lines, try lines.next())
        }
        guard let line, let header = try? JSONDecoder().decode(RegistrationsFile.Header.self, from: Data(line)),
            header.format == RegistrationsFile.Header.format
        else { throw CommandFailure(.data, "\(name) is not a registrations file: give one written by admin registrations export") }
        self.path = name
        self.lines = lines
        key = RegistrationsFile.key(of: identity)
        owner = identity.publicKey
        file = header.file
    }

    /// The part of the file that was read; nil if its size is not known.
    var share: Double? { lines.share }

    private static func reading<R>(_ path: String, _ body: () throws(LineReader.Failure) -> R) throws(CommandFailure) -> R {
        do {
            return try body()
        } catch {
            throw CommandFailure(.data, "\(path) \(error.reason)")
        }
    }

    /// nil at the end of a complete file.
    mutating func next() throws(CommandFailure) -> RegistrationsFile.Entry? {
        let text = try Self.reading(path) { [lines] () throws(LineReader.Failure) in try lines.next() }
        guard let text else {
            throw CommandFailure(.data, "\(path) is truncated: the registrations before its end were imported")
        }
        let binding = RegistrationsFile.binding(file, count)
        guard let sealed = Data(base64Encoded: Data(text)),
            let plain = try? AESGCM.open(Array(sealed), key: key, layout: .nonceFirst, associatedData: binding),
            let line = try? JSONDecoder().decode(RegistrationsFile.Line.self, from: Data(plain))
        else {
            throw CommandFailure(.data, "line \(count + 2) of \(path) can't be decrypted: it was altered, or belongs to another identity")
        }
        if line.end == count { return nil }
        guard let entry = ProtocolLines.all.lazy.compactMap({ [owner] in $0.entry(line, owner) }).first else {
            let reason =
                line.added.map { added in
                    NodeAssembly.protocols.contains { $0.name == added.protocol }
                        ? "contains no registration that \(added.protocol) knows"
                        : "is of the protocol \(added.protocol), which this program does not speak: import it with the program that does"
                } ?? "contains no registration"
            throw CommandFailure(.data, "line \(count + 2) of \(path) \(reason)")
        }
        count += 1
        return entry
    }
}
