"""The path of a call, in one place and in one order; nothing looks back, nothing is decided twice.

record.open → admit (service, method, level, personality) → decode → handle → prune → word → record.close

A handler that neither waits nor asks runs to its end here and costs no task; any other becomes a task of steps that
the engine drives. Refusals keep their facts up to ``_refuse``, where the personality finds the words.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError, Message

from fakecri.base.reasons import Code, CriError, Reason
from fakecri.base.steps import Cancelled, Steps
from fakecri.core.rpc import load_all
from fakecri.core.rpc.registry import HANDLERS, Context, Pieces, Registered
from fakecri.core.traits import Unimplemented
from fakecri.personality.model import Personality, WordingError, word
from fakecri.record.call import Call, Reply
from fakecri.wire.levels import View, non_utf8_env_value
from fakecri.wire.methods import METHODS, MethodSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakecri.core.runtime import Runtime
    from fakecri.record.recorder import Recorder

load_all()

_EMPTY = Reply(Code.OK, "", b"")
_UNIMPLEMENTED = {
    Unimplemented.UNKNOWN: Reason.UNKNOWN_METHOD,
    Unimplemented.NOT_WRITTEN: Reason.METHOD_NOT_IMPLEMENTED,
}


class Pipeline:
    """The stages, bound to one runtime, one personality, one record and the served API versions."""

    def __init__(
        self,
        runtime: Runtime,
        personality: Personality,
        recorder: Recorder,
        views: Mapping[str, View],
        served: Mapping[str, frozenset[str]],
    ) -> None:
        self._runtime = runtime
        self._personality = personality
        self._recorder = recorder
        self._views = views
        #: Service → API versions; the engine may replace entries while calls are open.
        self.served = served
        self._unimplemented = runtime.behaviour.unimplemented
        self._limit = runtime.behaviour.message_limit_bytes

    # -- the two ways through --------------------------------------------------------------------------------------
    def start(self, call: Call) -> Reply | Steps[Reply]:
        """Run a call to its end, or to where it must suspend: then the rest of its steps."""
        self._recorder.open(call)
        try:
            spec = self._admit(call)
            registered = HANDLERS[spec.name]
            call.subscription = registered.subscription
            request = self._decode(spec, call)
            context = Context(spec.name, self._views[spec.api], call.time_left_ns)
            if registered.suspends:
                return self._suspending(call, registered, context, request)
            reply = self._render(registered.handler(self._runtime, context, request), context)
        except CriError as refusal:
            reply = self._refuse(call, refusal)
        except Exception:
            reply = self._unforeseen(call)
        return self._close(call, reply)

    def _suspending(self, call: Call, registered: Registered, context: Context, request: Message) -> Steps[Reply]:
        try:
            answer = yield from registered.handler(self._runtime, context, request)
            reply = _EMPTY if answer is None else self._render(answer, context)
        except CriError as refusal:
            reply = self._refuse(call, refusal)
        except Cancelled:
            raise
        except Exception:
            reply = self._unforeseen(call)
        return self._close(call, reply)

    def encode(self, call: Call, message: Message | Pieces) -> bytes:
        """One message of a stream, as it goes to the wire.

        Raises:
            CriError: RESPONSE_TOO_LARGE; the stream ends with it.
        """
        assert call.spec is not None
        return self._body(message, self._views[call.spec.api])

    # -- the stages ------------------------------------------------------------------------------------------------
    def _admit(self, call: Call) -> MethodSpec:
        spec = METHODS.get(call.path)
        service, method = _split(call.path)
        if spec is None:
            known = any(service == f"runtime.{api}.{name}" for name, served in self.served.items() for api in served)
            raise CriError(Reason.UNKNOWN_METHOD if known else Reason.UNKNOWN_SERVICE, service=service, method=method)
        if spec.api not in self.served[spec.service]:
            raise CriError(Reason.UNKNOWN_SERVICE, service=service, method=method)
        call.spec = spec
        absent = self._unimplemented.get(spec.name)
        if absent is None and not self._views[spec.api].admits(spec):
            absent = Unimplemented.UNKNOWN
        if absent is None and spec.name not in HANDLERS:
            absent = Unimplemented.NOT_WRITTEN
        if absent is not None:
            raise CriError(_UNIMPLEMENTED[absent], service=service, method=spec.name)
        return spec

    def _decode(self, spec: MethodSpec, call: Call) -> Message:
        if len(call.request) > self._limit:
            raise CriError(Reason.REQUEST_TOO_LARGE, size=len(call.request), limit=self._limit)
        try:
            request = spec.request.FromString(call.request)
        except DecodeError as error:
            raise CriError(Reason.UNDECODABLE, detail=str(error)) from error
        view = self._views[spec.api]
        if not view.full:
            view.clear(request)
        if view.env_value_is_text:
            field = non_utf8_env_value(request)
            if field is not None:
                raise CriError(Reason.FIELD_NOT_UTF8, field=field)
        return request

    def _render(self, answer: Message | Pieces, context: Context) -> Reply:
        return Reply(Code.OK, "", self._body(answer, context.view))

    def _body(self, answer: Message | Pieces, view: View) -> bytes:
        if type(answer) is Pieces:
            body = answer.body
        else:
            assert isinstance(answer, Message)
            if not view.full:
                view.clear(answer)
            body = answer.SerializeToString(deterministic=True)
        if len(body) > self._limit:  # what the call has done stays done
            raise CriError(Reason.RESPONSE_TOO_LARGE, size=len(body), limit=self._limit)
        return body

    def _refuse(self, call: Call, refusal: CriError) -> Reply:
        try:
            code, text = word(self._personality, call.spec.name if call.spec else "", refusal)
        except WordingError as problem:
            if refusal.reason is Reason.UNFORESEEN:
                return Reply(Code.INTERNAL, f"{problem}; {refusal}", b"")
            return self._unforeseen(call)
        return Reply(int(code), text, b"")

    def _unforeseen(self, call: Call) -> Reply:
        call.error = traceback.format_exc()
        self._recorder.failures.append(f"call {call.id} {call.method}\n{call.error}")
        error: Any = call.error.strip().rsplit("\n", 1)[-1]
        return self._refuse(call, CriError(Reason.UNFORESEEN, call=call.id, error=error))

    def _close(self, call: Call, reply: Reply) -> Reply:
        self._recorder.close(call, reply, self._runtime.clock.now_ns)
        return reply


def _split(path: str) -> tuple[str, str]:
    """Service and method of ``/service/method``.

    Raises:
        CriError: MALFORMED_METHOD, as grpc-go answers a path without a service.
    """
    service, slash, method = path.removeprefix("/").rpartition("/")
    if not slash or not path.startswith("/"):
        raise CriError(Reason.MALFORMED_METHOD, path=path)
    return service, method
