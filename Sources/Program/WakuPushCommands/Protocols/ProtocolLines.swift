import NodeAssembly
import StatusServer
import Storage
import WakuCrypto

/// The lines of one protocol in a ``RegistrationsFile``.
struct ProtocolLines: Sendable {
    /// The lines of all protocols, in the order of the file.
    ///
    /// An earlier release ends its import at the first line that it does not know, so kinds of lines that were added later are last.
    static var all: [ProtocolLines] {
        [.status, .statusV01, .session, .statusV01RetiredTokens] + NodeAssembly.added.compactMap(ProtocolLines.init)
    }

    /// Whether one registration may have devices of several platforms, so that rows can't be selected by platform.
    let hasSeveralPlatforms: Bool
    /// Writes the lines of the selected rows, until ``RegistrationsFileWriter/add(_:)`` returns false.
    let export: @Sendable (any Store, RegistrationFilter, inout RegistrationsFileWriter) throws -> Void
    /// nil unless the line is one of this protocol.
    let entry: @Sendable (RegistrationsFile.Line, _ owner: PublicKey) -> RegistrationsFile.Entry?
}
