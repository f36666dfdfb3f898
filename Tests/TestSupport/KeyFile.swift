import Foundation
package import WakuCrypto

/// A key file in the program's format.
package struct KeyFile: Sendable {
    package let path: String
    package let key: PrivateKey

    package init(in folder: TemporaryFolder, _ name: String, key: PrivateKey = .generate()) throws {
        path = folder.path + "/" + name
        self.key = key
        try write(hexString(key.withBytes { Array($0) }) + "\n", to: path)
    }

    package var publicKey: String { "0x" + key.publicKey.hex }
    package var digits: String { key.withBytes { hexString($0) } }
}

/// Writes a file.
///
/// - Parameter mode: the file's mode, regardless of the umask.
package func write(_ text: String, to path: String, mode: Int = 0o600) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
}
