import Foundation
import TestSupport
import Testing

/// Key files as another user sees them.
@Suite(.timeLimit(.minutes(5)))
struct IdentityFileTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// As systemd hands over a credential where it can't give it away: root's, and readable by the service's group.
    @Test(.enabled(if: geteuid() == 0), arguments: [(0o440, 0), (0o640, 0), (0o660, 77), (0o644, 77)])
    func ofRootForThisGroup(mode: Int, status: Int32) async throws {
        let key = try KeyFile(in: folder, "id.key")
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: key.path)
        let asNobody = #"exec setpriv --reuid 65534 --regid 0 --clear-groups "$0" "$@""#
        let shown = try ChildProcess(["identity", "show", "--identity", key.path], shell: asNobody)
        #expect(await shown.status == status, "\(shown.errors)")
        #expect(shown.output.contains(key.publicKey) == (status == 0))
    }
}
