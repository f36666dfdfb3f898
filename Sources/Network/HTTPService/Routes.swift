import HTTPTypes
package import Hummingbird

/// Fixed paths with their methods. Other methods of these paths, and other paths, are answered by ``MethodRouting``.
package struct Routes {
    private let router = Router(context: PeerContext.self)
    private var methods: [String: [HTTPRequest.Method]] = [:]

    package init() {}

    /// - Parameter path: without leading and trailing slashes.
    package mutating func get(
        _ path: String, _ handler: @escaping @Sendable (Request, PeerContext) async throws -> some ResponseGenerator
    ) {
        router.on(RouterPath(path), method: .get, use: handler)
        methods[path, default: []].append(.get)
    }

    /// - Parameter path: without leading and trailing slashes.
    package mutating func post(
        _ path: String, _ handler: @escaping @Sendable (Request, PeerContext) async throws -> some ResponseGenerator
    ) {
        router.on(RouterPath(path), method: .post, use: handler)
        methods[path, default: []].append(.post)
    }

    package var responder: MethodRouting<RouterResponder<PeerContext>> {
        MethodRouting(router.buildResponder()) { [methods] path in methods[path.split(separator: "/").joined(separator: "/")] ?? [] }
    }
}
