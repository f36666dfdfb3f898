import NodeAPI
import NodeAssembly
import StatusServer
import Storage
import WakuCrypto

/// The lines of one protocol in a ``RegistrationsFile``.
struct ProtocolLines: Sendable {
    /// The lines of all protocols, in the order of the file.
    static var all: [ProtocolLines] { [.status, .statusV01, .session] + NodeAssembly.added.compactMap(ProtocolLines.init) }

    /// Whether one registration may have devices of several platforms, so that rows can't be selected by platform.
    let hasSeveralPlatforms: Bool
    /// Writes the lines of the selected rows.
    let export: @Sendable (any Store, RegistrationFilter, inout RegistrationsFileWriter) throws -> Void
    /// nil unless the line is one of this protocol.
    let entry: @Sendable (RegistrationsFile.Line, _ owner: PublicKey) -> RegistrationsFile.Entry?
}

/// Writes rows until one can't be written. Kept apart from store errors: a full disk under the file is not a store error.
struct LineExport {
    private var failure: (any Error)?

    /// - Returns: whether to go on with the next row.
    mutating func add(_ body: () throws -> Void) -> Bool {
        do { try body() } catch { failure = error }
        return failure == nil
    }

    /// Throws the error of the row that could not be written.
    func finish() throws {
        if let failure { throw failure }
    }
}
