import Core
import Foundation
import HTTPService
import PushReceiver
import Storage

/// The folder of `client listen`, mode 0700:
///
/// | file | content | mode |
/// |---|---|---|
/// | `subscription.json` | what is registered with push servers | 0600 |
/// | `receiver.key` | the private half of the subscription | 0600 |
/// | `removed` | paths of former subscriptions, a line each | 0600 |
/// | `authority.pem` | the certificate authority that the node must trust | 0644 |
/// | `certificate.pem`, `certificate.key` | the listener's own | 0600 |
struct ReceiverFolder {
    /// Former subscriptions beyond these are answered 404 instead of 410.
    private static let removedLimit = 1000
    private static let sizeLimit = 1 << 16
    /// A certificate with fewer days left is replaced.
    private static let daysBeforeRenewal = 30

    let path: String
    /// A listener knows only the subscription with which it started: a new one made meanwhile would be answered 404, with which servers remove it.
    private let use: FolderUse

    var subscriptionFile: String { path + "/subscription.json" }
    var authorityFile: String { path + "/authority.pem" }
    private var keyFile: String { path + "/receiver.key" }
    private var removedFile: String { path + "/removed" }
    private var certificateFile: String { path + "/certificate.pem" }
    private var certificateKeyFile: String { path + "/certificate.key" }

    /// Makes the folder if it is missing. No other process can use it as long as this value exists.
    init(_ path: String) throws(CommandFailure) {
        self.path = path
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) {
            guard isFolder.boolValue else { throw CommandFailure(.cannotCreate, "\(path) is not a folder") }
        } else if mkdir(path, 0o700) != 0 {
            throw CommandFailure(.cannotCreate, "folder \(path) can't be made: is its parent there, and may this user write to it?")
        }
        do throws(StoreError) {
            use = try FolderUse(of: path, isExclusive: true)
        } catch {
            throw CommandFailure(.unavailable, "folder \(path) is in use by another client listen: stop that one first")
        }
    }

    /// nil in a new folder.
    ///
    /// - Parameter replacesDamaged: whether a damaged key file counts as none, with a warning.
    func subscription(replacesDamaged: Bool = false) throws(CommandFailure) -> ReceiverSubscription? {
        guard FileManager.default.fileExists(atPath: keyFile) else { return nil }
        let content = try read("receiver key file", keyFile)
        guard let subscription = ReceiverSubscription(json: content) else {
            if replacesDamaged {
                CommandFailure.report("warning: receiver key file \(keyFile) is damaged: its VAPID key and endpoint are lost")
                return nil
            }
            throw CommandFailure(.data, "receiver key file \(keyFile) is damaged: make a new subscription with --renew")
        }
        // Missing or of the former subscription after a kill.
        if FileManager.default.contents(atPath: subscriptionFile).map(Array.init) != subscription.subscription.json {
            try writeRegistered(subscription)
        }
        return subscription
    }

    /// The paths of former subscriptions.
    func removed() throws(CommandFailure) -> [String] {
        guard FileManager.default.fileExists(atPath: removedFile) else { return [] }
        return String(decoding: try read("file", removedFile), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Stores a subscription in place of the present one, which then counts as removed.
    func replace(_ former: ReceiverSubscription?, by subscription: ReceiverSubscription) throws(CommandFailure) {
        if let former {
            let removed = (try removed() + [former.token]).suffix(Self.removedLimit)
            try write(removed.joined(separator: "\n"), to: removedFile)
        }
        try write(String(decoding: subscription.json, as: UTF8.self), to: keyFile)
        try writeRegistered(subscription)
    }

    private func writeRegistered(_ subscription: ReceiverSubscription) throws(CommandFailure) {
        try write(String(decoding: subscription.subscription.json, as: UTF8.self), to: subscriptionFile)
    }

    /// The listener's certificate and key. Makes them, and their authority, if they are missing, damaged or for other hosts, or expire soon: only then
    /// must nodes load another authority.
    ///
    /// - Parameter hosts: names and addresses of the listener.
    func certificate(for hosts: [String]) throws(CommandFailure) -> (chain: [UInt8], key: [UInt8]) {
        if [certificateFile, certificateKeyFile, authorityFile].allSatisfy(FileManager.default.fileExists) {
            let chain = try read("certificate", certificateFile)
            let key = try read("key file", certificateKeyFile)
            if let identity = TLSIdentity(certificate: chain, key: key), identity.daysLeft >= Self.daysBeforeRenewal,
                hosts.allSatisfy(identity.names)
            {
                return (chain, key)
            }
        }
        guard let made = TrialCertificate(hosts: hosts) else {
            throw CommandFailure(.usage, "no certificate can be made for \(hosts.joined(separator: ", "))")
        }
        // The certificate is the last: after a kill in between, all of them are made again.
        try write(made.authority, to: authorityFile, mode: 0o644)
        try write(made.key, to: certificateKeyFile)
        try write(made.certificate, to: certificateFile)
        return (Array(made.certificate.utf8), Array(made.key.utf8))
    }

    private func read(_ kind: String, _ path: String) throws(CommandFailure) -> [UInt8] {
        try PrivateFile(kind: kind, path: path).read(upTo: Self.sizeLimit, remedy: "make a new subscription with --renew")
    }

    /// Replaces the file as a whole.
    private func write(_ text: String, to path: String, mode: mode_t = 0o600) throws(CommandFailure) {
        let temporary = path + ".new"
        unlink(temporary)
        try PrivateFile(kind: "file", path: temporary).create(text)
        guard chmod(temporary, mode) == 0, rename(temporary, path) == 0 else {
            unlink(temporary)
            throw CommandFailure(.cannotCreate, "file \(path) can't be written")
        }
    }
}
